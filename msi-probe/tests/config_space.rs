//! The parser against spaces whose right reading was worked out by hand from `pci_regs.h`.
#![allow(clippy::unwrap_used)]

mod common;

use std::cell::RefCell;

use common::Space;
use msi_probe::Finding;
use msi_probe::config_space::{
    BarOffset, Capabilities, MsiControl, MsixControl, parse, parse_bytes,
};
use proptest::prelude::*;

fn offsets(found: &Capabilities) -> Vec<(u8, u8)> {
    found.list.iter().map(|c| (c.offset, c.id)).collect()
}

#[test]
fn msi_of_8_vectors_with_one_in_use() {
    // Enable 1, QMASK 3 (2^3 = 8), QSIZE 0 (2^0 = 1), 64-bit 0x80, mask bits 0x100.
    let found = parse_bytes(&Space::new(0, 0x50).msi(0x50, 0, 0x0187).0);
    let msi = found.msi.unwrap();
    assert_eq!((msi.cap_offset, msi.enabled), (0x50, true));
    assert_eq!((msi.vectors, msi.vectors_enabled), (8, 1));
    assert!(msi.bits64 && msi.maskable);
    assert_eq!((found.msix, found.complete), (None, true));
    assert_eq!(found.findings, []);
}

#[test]
fn msi_vector_counts_are_powers_of_two_in_separate_fields() {
    // QMASK is bits 3:1, QSIZE bits 6:4.
    for (control, vectors, enabled) in [
        (0x0000, 1, 1),
        (0x0024, 4, 4),
        (0x002a, 32, 4),
        (0x005a, 32, 32),
        (0xfe0e, 128, 1),
        (0xfe71, 1, 128),
    ] {
        let control = MsiControl::from_bits_retain(control);
        assert_eq!(
            (control.vectors(), control.vectors_enabled()),
            (vectors, enabled)
        );
    }
    let off = parse_bytes(&Space::new(0, 0x50).msi(0x50, 0, 0x0024).0)
        .msi
        .unwrap();
    assert!(!off.enabled && !off.bits64 && !off.maskable);
}

#[test]
fn msix_registers_hold_bar_and_offset() {
    // QSIZE 0x7ff (2048 vectors), MASKALL 0x4000, ENABLE 0x8000.
    let space = Space::new(0, 0x70).msix(0x70, 0, 0xc7ff, 0x0000_2004, 0xffff_fffb);
    let msix = parse_bytes(&space.0).msix.unwrap();
    assert_eq!(
        (msix.cap_offset, msix.enabled, msix.masked),
        (0x70, true, true)
    );
    assert_eq!(msix.vectors, 2048);
    assert_eq!(
        msix.table,
        BarOffset {
            bar: 4,
            offset: 0x2000
        }
    );
    assert_eq!(
        msix.pba,
        BarOffset {
            bar: 3,
            offset: 0xffff_fff8
        }
    );
}

#[test]
fn the_msix_table_has_one_vector_more_than_its_field_says() {
    for (control, vectors) in [(0x0000, 1), (0x8004, 5), (0x3800, 1), (0x07fe, 2047)] {
        assert_eq!(MsixControl::from_bits_retain(control).vectors(), vectors);
    }
    let one = parse_bytes(&Space::new(0, 0x40).msix(0x40, 0, 0x8000, 0, 0).0)
        .msix
        .unwrap();
    assert_eq!((one.vectors, one.enabled, one.masked), (1, true, false));
}

#[test]
fn bridges_and_cardbus_bridges_have_their_list_in_their_own_place() {
    let bridge = Space::new(0x81, 0x50)
        .cap(0x50, 0x01, 0x80)
        .msi(0x80, 0, 0x0003);
    let found = parse_bytes(&bridge.0);
    assert_eq!(offsets(&found), [(0x50, 0x01), (0x80, 0x05)]);
    assert_eq!(found.msi.unwrap().vectors, 2);

    let cardbus = Space::new(2, 0xa0).msi(0xa0, 0, 0x0001).put(0x34, &[0x60]);
    let found = parse_bytes(&cardbus.0);
    assert_eq!(offsets(&found), [(0xa0, 0x05)], "0x34 is no pointer here");
    assert!(found.msi.unwrap().enabled);
}

#[test]
fn the_low_bits_of_pointers_are_masked_and_the_end_is_the_end() {
    let space = Space::new(0, 0x53).cap(0x50, 0x01, 0x62).msi(0x60, 0x03, 0);
    let found = parse_bytes(&space.0);
    assert_eq!(offsets(&found), [(0x50, 0x01), (0x60, 0x05)]);
    assert!(found.complete);
    assert_eq!(found.findings, []);
}

#[test]
fn a_device_without_list_is_known_to_have_no_msi_from_one_double_word() {
    let mut space = Space::new(0, 0x50).msi(0x50, 0, 1);
    space.0[0x06] = 0;
    let found = parse_bytes(&space.0[..8]);
    assert_eq!((found.msi, found.complete), (None, true));
    assert_eq!(found.findings, []);
}

#[test]
fn what_is_not_visible_is_not_none() {
    let space = Space::new(0, 0x40)
        .cap(0x40, 0x01, 0x98)
        .msix(0x98, 0, 0x8004, 0, 0);
    for (length, at) in [
        (64, 0x40),
        (128, 0x98),
        (0x9a, 0x98),
        (0x9c, 0x9c),
        (0xa3, 0xa0),
    ] {
        let found = parse_bytes(&space.0[..length]);
        assert_eq!(
            (found.msix, found.complete),
            (None, false),
            "{length} bytes"
        );
        assert_eq!(
            found.findings,
            [Finding::Truncated { at }],
            "{length} bytes"
        );
    }
    let whole = parse_bytes(&space.0[..0xa4]);
    assert!(whole.complete && whole.msix.is_some());
    // 128 bytes are enough for a list that ends within them.
    let cardbus = Space::new(2, 0x44).msi(0x44, 0, 1);
    let found = parse_bytes(&cardbus.0[..128]);
    assert!(found.complete && found.msi.is_some());
    // What was seen before the end stands.
    let both = Space::new(0, 0x44).msi(0x44, 0x98, 1);
    let found = parse_bytes(&both.0[..128]);
    assert!(!found.complete && found.msi.is_some());
    for length in [0, 4, 7] {
        let found = parse_bytes(&space.0[..length]);
        assert_eq!(found.findings, [Finding::Truncated { at: 0x04 }]);
        assert_eq!((found.intx_disabled, found.complete), (None, false));
    }
}

#[test]
fn a_loop_is_left_after_one_round() {
    let space = Space::new(0, 0x50)
        .cap(0x50, 0x09, 0x60)
        .msi(0x60, 0x50, 0x0001);
    let found = parse_bytes(&space.0);
    assert_eq!(offsets(&found), [(0x50, 0x09), (0x60, 0x05)]);
    assert_eq!(found.findings, [Finding::Loop { at: 0x50 }]);
    assert!(found.complete && found.msi.is_some(), "all of it was seen");

    let itself = Space::new(0, 0x40).cap(0x40, 0x01, 0x40);
    assert_eq!(
        parse_bytes(&itself.0).findings,
        [Finding::Loop { at: 0x40 }]
    );
}

#[test]
fn an_id_of_0xff_ends_the_list() {
    let space = Space::new(0, 0x50).msi(0x50, 0x60, 1).cap(0x60, 0xff, 0x70);
    let found = parse_bytes(&space.msix(0x70, 0, 0x8000, 0, 0).0);
    assert_eq!(offsets(&found), [(0x50, 0x05)]);
    assert_eq!(found.findings, [Finding::BrokenCapability { at: 0x60 }]);
    assert_eq!(found.msix, None);
}

#[test]
fn pointers_into_the_header_and_0xff_end_the_list() {
    let header = Space::new(0, 0x50).cap(0x50, 0x01, 0x10).msi(0x10, 0, 1);
    let found = parse_bytes(&header.0);
    assert_eq!(
        found.findings,
        [Finding::BadPointer {
            from: 0x50,
            to: 0x10
        }]
    );
    assert_eq!((found.msi, found.complete), (None, true));

    let start = parse_bytes(&Space::new(0, 0x3d).0);
    assert_eq!(
        start.findings,
        [Finding::BadPointer {
            from: 0x34,
            to: 0x3c
        }]
    );

    let ones = Space::new(0, 0x50).cap(0x50, 0x01, 0xff).msi(0xfc, 0, 1);
    let found = parse_bytes(&ones.0);
    assert_eq!(
        found.findings,
        [Finding::BadPointer {
            from: 0x50,
            to: 0xff
        }]
    );
    assert_eq!(found.msi, None);
}

#[test]
fn a_device_that_reads_as_ones_has_not_answered() {
    let found = parse_bytes(&[0xff; 256]);
    assert_eq!(found.findings, [Finding::NoAnswer]);
    assert!(!found.complete, "nothing is known of it");
    assert_eq!(
        (found.intx_disabled, found.msi, found.msix),
        (None, None, None)
    );
}

#[test]
fn an_unknown_header_has_no_list() {
    let found = parse_bytes(&Space::new(0x83, 0x50).msi(0x50, 0, 1).0);
    assert_eq!(found.findings, [Finding::UnknownHeader { header_type: 3 }]);
    assert_eq!(found.msi, None);
}

#[test]
fn an_msix_capability_past_the_end_loses_itself_only() {
    for at in [0xf8, 0xfc] {
        let space = Space::new(0, at).cap(at, 0x11, 0x50).msi(0x50, 0, 1);
        let found = parse_bytes(&space.0);
        assert_eq!(found.findings, [Finding::Overrun { at }]);
        assert!(found.msix.is_none() && found.msi.is_some());
    }
    let last = Space::new(0, 0xf4).msix(0xf4, 0, 0x8001, 2, 3);
    assert_eq!(parse_bytes(&last.0).msix.unwrap().vectors, 2);
}

#[test]
fn the_first_of_two_is_the_one() {
    let space = Space::new(0, 0x50)
        .msi(0x50, 0x60, 0x0006)
        .msi(0x60, 0, 0x0001);
    let found = parse_bytes(&space.0);
    assert_eq!(found.msi.unwrap().vectors, 8);
    assert_eq!(found.list.len(), 2);
}

#[test]
fn intx_is_forbidden_by_bit_10_of_the_command_register() {
    let with = |high: u8| parse_bytes(&Space::new(0, 0).put(0x05, &[high]).0);
    assert_eq!(with(0x04).intx_disabled, Some(true));
    assert_eq!(with(0xfb).intx_disabled, Some(false));
}

/// The list that fills every place there is: 0x40, 0x44, ... 0xfc.
fn fullest() -> Space {
    let mut space = Space::new(0, 0x40);
    for offset in (0x40..=0xfc_u8).step_by(4) {
        space = space.cap(offset, 0x09, offset.wrapping_add(4));
    }
    space
}

#[test]
fn a_list_of_48_is_followed_to_its_end() {
    let found = parse_bytes(&fullest().0);
    assert_eq!((found.list.len(), found.complete), (48, true));
    assert_eq!(found.findings, []);
    let looped = parse_bytes(&fullest().cap(0xfc, 0x09, 0x40).0);
    assert_eq!(looped.list.len(), 48);
    assert_eq!(looped.findings, [Finding::Loop { at: 0x40 }]);
}

/// The double words that are read, in their order.
fn reads(space: &Space) -> Vec<u8> {
    let reads = RefCell::new(Vec::new());
    parse(|offset| {
        reads.borrow_mut().push(offset);
        let at = usize::from(offset);
        Some(u32::from_le_bytes(space.0[at..at + 4].try_into().unwrap()))
    });
    reads.into_inner()
}

#[test]
fn only_the_double_words_that_matter_are_read() {
    // A virtio device of Firecracker: five vendor's capabilities, then MSI-X.
    let virtio = Space::new(0, 0x40)
        .cap(0x40, 0x09, 0x50)
        .cap(0x50, 0x09, 0x60)
        .cap(0x60, 0x09, 0x70)
        .cap(0x70, 0x09, 0x84)
        .cap(0x84, 0x09, 0x98)
        .msix(0x98, 0, 0x8004, 0x8000, 0x48000);
    assert_eq!(
        reads(&virtio),
        [
            0x04, 0x0c, 0x34, 0x40, 0x50, 0x60, 0x70, 0x84, 0x98, 0x9c, 0xa0
        ]
    );
    let msi = Space::new(0, 0x50).msi(0x50, 0, 1);
    assert_eq!(reads(&msi), [0x04, 0x0c, 0x34, 0x50]);
    let cardbus = Space::new(2, 0x50).msi(0x50, 0, 1);
    assert_eq!(reads(&cardbus), [0x04, 0x0c, 0x14, 0x50]);
    let mut without = Space::new(0, 0);
    without.0[0x06] = 0;
    assert_eq!(reads(&without), [0x04]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let found = parse_bytes(&bytes);
        prop_assert!(found.list.len() <= 48);
    }

    /// Random bytes rarely have a list: this gives them one.
    #[test]
    fn any_list_is_answered(
        bytes in proptest::collection::vec(any::<u8>(), 256),
        header_type in 0u8..4,
        start in any::<u8>(),
        length in 0usize..=256,
    ) {
        let mut bytes = bytes;
        bytes[0x06] |= 0x10;
        bytes[0x0e] = header_type;
        bytes[0x14] = start;
        bytes[0x34] = start;
        let whole = parse_bytes(&bytes);
        prop_assert!(whole.list.len() <= 48);
        let mut places: Vec<u8> = whole.list.iter().map(|c| c.offset).collect();
        prop_assert!(places.iter().all(|at| *at >= 0x40 && at % 4 == 0));
        places.sort_unstable();
        places.dedup();
        prop_assert_eq!(places.len(), whole.list.len(), "none twice");

        // Less to see never shows something else.
        let part = parse_bytes(&bytes[..length]);
        prop_assert!(whole.list.starts_with(&part.list));
        if part.complete {
            prop_assert_eq!(part, whole);
        } else {
            prop_assert!(part.msi.is_none() || part.msi == whole.msi);
            prop_assert!(part.msix.is_none() || part.msix == whole.msix);
        }
    }

    #[test]
    fn a_list_in_any_order_is_found(places in proptest::sample::subsequence(
        (0x40..=0xfc_u8).step_by(4).collect::<Vec<_>>(), 0..=48).prop_shuffle()
    ) {
        let mut space = Space::new(0, places.first().copied().unwrap_or(0));
        for (at, offset) in places.iter().enumerate() {
            space = space.cap(*offset, 0x09, places.get(at + 1).copied().unwrap_or(0));
        }
        let found = parse_bytes(&space.0);
        prop_assert!(found.complete && found.findings.is_empty());
        let found: Vec<u8> = found.list.iter().map(|c| c.offset).collect();
        prop_assert_eq!(found, places);
    }
}
