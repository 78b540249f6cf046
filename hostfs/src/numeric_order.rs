//! The order of names as people count: `cpu2` before `cpu10`.

use std::cmp::Ordering;

/// Compares names with the numbers in them by value.
pub(crate) fn numeric_order(a: &str, b: &str) -> Ordering {
    let (mut a_rest, mut b_rest) = (a, b);
    loop {
        let (Some(x), Some(y)) = (a_rest.chars().next(), b_rest.chars().next()) else {
            return a_rest.len().cmp(&b_rest.len()).then_with(|| a.cmp(b));
        };
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let (x, y);
            (x, a_rest) = split_digits(a_rest);
            (y, b_rest) = split_digits(b_rest);
            // Without leading zeros, the longer number is the larger.
            match x.len().cmp(&y.len()).then_with(|| x.cmp(y)) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
        } else if x == y {
            (a_rest, b_rest) = (&a_rest[x.len_utf8()..], &b_rest[y.len_utf8()..]);
        } else {
            return x.cmp(&y);
        }
    }
}

/// The number that the text begins with, without leading zeros, and the rest.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits.trim_start_matches('0'), rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_an_order(mut names in proptest::collection::vec("[a0-2]{0,6}", 3)) {
            names.sort_by(|a, b| numeric_order(a, b));
            // Sorting must not depend on which two are compared.
            prop_assert_ne!(numeric_order(&names[0], &names[2]), Ordering::Greater);
            prop_assert_eq!(
                numeric_order(&names[0], &names[1]),
                numeric_order(&names[1], &names[0]).reverse()
            );
            prop_assert_eq!(numeric_order(&names[0], &names[1]) == Ordering::Equal, names[0] == names[1]);
        }
    }
}
