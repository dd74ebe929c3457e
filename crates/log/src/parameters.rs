//! Parameters of a statement as PostgreSQL logs them: `parameters: $1 = 'it''s', $2 = NULL`.

use std::borrow::Cow;

use memchr::memchr;

use crate::entry::Bytes;

/// Reads the DETAIL of a statement: its parameters in order, None for NULL. None for another detail, or one that is malformed.
pub(crate) fn read(detail: &[u8]) -> Option<Vec<Option<Bytes<'_>>>> {
    let mut rest = values_of(detail)?;
    let mut values = Vec::new();
    loop {
        let equals = memchr(b' ', rest)?;
        let number = rest[..equals].strip_prefix(b"$")?;
        if crate::entry::number::<usize>(number)? != values.len() + 1 {
            return None;
        }
        rest = rest[equals..].strip_prefix(b" = ")?;
        match rest.strip_prefix(b"'") {
            Some(quoted) => {
                let (value, after) = quoted_value(quoted)?;
                values.push(Some(value));
                rest = after;
            }
            None => {
                rest = rest.strip_prefix(b"NULL")?;
                values.push(None);
            }
        }
        if rest.is_empty() {
            return Some(values);
        }
        rest = rest.strip_prefix(b", ")?;
    }
}

/// Returns the part of a DETAIL with parameters after its title.
fn values_of(detail: &[u8]) -> Option<&[u8]> {
    // A capital from PostgreSQL 16.
    let is_title = |title: &[u8]| title.eq_ignore_ascii_case(b"parameters: ");
    detail
        .split_at_checked(12)
        .and_then(|(title, values)| is_title(title).then_some(values))
}

/// Returns whether a DETAIL has parameters and the last one has no end.
pub(crate) fn are_cut(detail: &[u8]) -> bool {
    values_of(detail).is_some() && read(detail).is_none()
}

/// Returns whether log_parameter_max_length may have cut a value, which leaves three dots.
pub(crate) fn may_be_cut(value: &[u8]) -> bool {
    value.ends_with(b"...")
}

/// Reads what follows an opening quotation mark: the value, and what follows the closing one.
fn quoted_value(text: &[u8]) -> Option<(Bytes<'_>, &[u8])> {
    let mut value = Cow::Borrowed(&b""[..]);
    let mut rest = text;
    loop {
        let mark = memchr(b'\'', rest)?;
        let (part, after) = (&rest[..mark], &rest[mark + 1..]);
        if value.is_empty() && after.first() != Some(&b'\'') {
            return Some((Cow::Borrowed(part), after));
        }
        value.to_mut().extend_from_slice(part);
        match after.strip_prefix(b"'") {
            None => return Some((value, after)),
            Some(further) => {
                value.to_mut().push(b'\'');
                rest = further;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn logged(values: &[Option<String>]) -> String {
        let one = |(number, value): (usize, &Option<String>)| match value {
            None => format!("${} = NULL", number + 1),
            Some(text) => format!("${} = '{}'", number + 1, text.replace('\'', "''")),
        };
        let all: Vec<String> = values.iter().enumerate().map(one).collect();
        format!("Parameters: {}", all.join(", "))
    }

    #[test]
    fn values_are_read_in_order() {
        let values =
            read(b"parameters: $1 = 'it''s', $2 = NULL, $3 = '', $4 = 'a, $5 = b'").unwrap();
        let expected: Vec<Option<Bytes<'_>>> = vec![
            Some(Cow::Borrowed(b"it's")),
            None,
            Some(Cow::Borrowed(b"")),
            Some(Cow::Borrowed(b"a, $5 = b")),
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn other_details_are_no_parameters() {
        for detail in [
            "",
            "prepare: PREPARE a AS SELECT 1",
            "parameters: ",
            "parameters: $2 = '1'",
            "parameters: $1 = '1",
            "parameters: $1 = 1",
            "parameters: $1 = '1' $2 = '2'",
            "parameters: $1 = '1', ",
        ] {
            assert_eq!(read(detail.as_bytes()), None, "{detail}");
        }
    }

    #[test]
    fn parameters_without_an_end_are_cut() {
        for (detail, expected) in [
            ("parameters: $1 = 'it''s", true),
            ("Parameters: $1 = '1', $2 = '", true),
            ("Parameters: $1 = '1'", false),
            ("Key (id)=(1", false),
        ] {
            assert_eq!(are_cut(detail.as_bytes()), expected, "{detail}");
        }
    }

    #[test]
    fn what_was_cut_ends_with_dots() {
        assert!(may_be_cut(b"abc..."));
        assert!(!may_be_cut(b"abc"));
    }

    proptest! {
        #[test]
        fn all_values_come_back(values in proptest::collection::vec(proptest::option::of("[a'$=, ]{0,12}"), 1..6)) {
            let detail = logged(&values);
            let found = read(detail.as_bytes()).unwrap();
            let found: Vec<Option<String>> =
                found.iter().map(|value| value.as_ref().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())).collect();
            prop_assert_eq!(found, values);
        }
    }
}
