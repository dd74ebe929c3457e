//! Unsigned numbers in as many bytes as they need: seven bits a byte, the lowest first (LEB128).

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends bytes after their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes a number from the beginning of `data`; None if it is cut off, or too large.
pub(crate) fn take(data: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = data.split_first()?;
        *data = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Takes bytes after their length.
pub(crate) fn take_bytes<'a>(data: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take(data)?).ok()?;
    let (bytes, rest) = data.split_at_checked(length)?;
    *data = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(values in proptest::collection::vec(any::<u64>(), 0..20)) {
            let mut out = Vec::new();
            for &value in &values {
                put(&mut out, value);
            }
            let mut data = &out[..];
            for &value in &values {
                prop_assert_eq!(take(&mut data), Some(value));
            }
            prop_assert!(data.is_empty());
        }

        #[test]
        fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..30)) {
            let mut data = &bytes[..];
            while take_bytes(&mut data).is_some() {}
        }
    }

    #[test]
    fn what_is_cut_off_or_too_large_is_refused() {
        assert_eq!(take(&mut &b"\x80"[..]), None);
        assert_eq!(take(&mut &[0xff; 10][..]), None);
        assert_eq!(take_bytes(&mut &b"\x05abc"[..]), None);
    }
}
