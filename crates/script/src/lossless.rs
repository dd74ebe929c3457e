//! Converts bytes in any encoding to text, and back. Valid UTF-8 is unchanged; every other byte becomes one of the last
//! 128 characters of the private use area, U+10FF80 to U+10FFFF. Where these characters themselves occur, their bytes
//! are converted one by one, so that nothing is lost and no two sequences of bytes have the same text.

use std::borrow::Cow;

/// The character that represents byte 0.
const BASE: u32 = 0x0010_FF00;

/// First byte of the UTF-8 form of all characters that represent bytes.
const FIRST_BYTE: u8 = 0xF4;

/// The byte that a character represents, if it represents one.
#[must_use]
pub fn byte_of(character: char) -> Option<u8> {
    let byte = u8::try_from(u32::from(character).checked_sub(BASE)?).ok()?;
    (byte >= 0x80).then_some(byte)
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    let characters = bytes
        .iter()
        .filter_map(|&byte| char::from_u32(BASE + u32::from(byte)));
    text.extend(characters);
}

/// The text of `bytes`.
#[must_use]
pub fn from_bytes(bytes: &[u8]) -> Cow<'_, str> {
    if !bytes.contains(&FIRST_BYTE)
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if byte_of(character).is_some() {
                push_bytes(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(character);
            }
        }
        push_bytes(&mut text, chunk.invalid());
    }
    Cow::Owned(text)
}

/// The bytes of a `text` that [`from_bytes`] returned.
#[must_use]
pub fn to_bytes(text: &str) -> Cow<'_, [u8]> {
    if !text.as_bytes().contains(&FIRST_BYTE) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match byte_of(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        let table: [(&[u8], &str); 6] = [
            (b"abc", "abc"),
            ("\u{e9}\u{1F600}".as_bytes(), "\u{e9}\u{1F600}"),
            (b"caf\xe9", "caf\u{10FFE9}"),
            (b"\xc3\xa9\xc3", "\u{e9}\u{10FFC3}"),
            (
                "\u{10FF80}".as_bytes(),
                "\u{10FFF4}\u{10FF8F}\u{10FFBE}\u{10FF80}",
            ),
            ("\u{10FF7F}".as_bytes(), "\u{10FF7F}"),
        ];
        for (bytes, text) in table {
            assert_eq!(from_bytes(bytes), text);
            assert_eq!(*to_bytes(text), *bytes);
        }
        assert_eq!(*to_bytes(&from_bytes(&all)), *all);
    }
}
