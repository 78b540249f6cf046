//! Configuration spaces that tests put together, byte by byte.
#![allow(dead_code)] // Each test file uses its own part.

/// 256 bytes of a configuration space.
#[derive(Clone)]
pub struct Space(pub [u8; 256]);

impl Space {
    /// A header of this type that announces a list of capabilities at `start`.
    pub fn new(header_type: u8, start: u8) -> Self {
        let mut bytes = [0; 256];
        bytes[0x00..0x04].copy_from_slice(&[0x86, 0x80, 0x34, 0x12]);
        bytes[0x06] = 0x10;
        // A bridge's class where lspci expects a bridge's header.
        bytes[0x0a..0x0c].copy_from_slice(match header_type & 0x7f {
            0 => &[0x00, 0x02],
            1 => &[0x04, 0x06],
            _ => &[0x07, 0x06],
        });
        bytes[0x0e] = header_type;
        bytes[if header_type & 0x7f == 2 { 0x14 } else { 0x34 }] = start;
        Self(bytes)
    }

    /// Writes bytes at an offset.
    pub fn put(mut self, offset: usize, bytes: &[u8]) -> Self {
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// A capability without contents.
    pub fn cap(self, offset: u8, id: u8, next: u8) -> Self {
        self.put(offset.into(), &[id, next])
    }

    /// An MSI capability with this control word.
    pub fn msi(self, offset: u8, next: u8, control: u16) -> Self {
        let [low, high] = control.to_le_bytes();
        self.put(offset.into(), &[0x05, next, low, high])
    }

    /// An MSI-X capability with this control word and registers.
    pub fn msix(self, offset: u8, next: u8, control: u16, table: u32, pba: u32) -> Self {
        let [low, high] = control.to_le_bytes();
        let at = usize::from(offset);
        self.put(at, &[0x11, next, low, high])
            .put(at + 4, &table.to_le_bytes())
            .put(at + 8, &pba.to_le_bytes())
    }
}
