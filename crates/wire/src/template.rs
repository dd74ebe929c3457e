//! Templates: a statement as the bytes to send, built once, with holes for parameters.

use postgres_protocol::message::frontend;

use crate::encode::{EncodeError, SYNC, encode};

/// A message's tag and its length word.
const HEADER_BYTES: usize = 5;

/// A message of zero-terminated texts, and the bytes that follow them. `postgres-protocol` writes only UTF-8, and a
/// statement can be in any client encoding.
fn message(tag: u8, texts: &[&[u8]], rest: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let mut body = Vec::new();
    for text in texts {
        if text.contains(&0) {
            return Err(EncodeError::new("a statement", "it has a zero byte"));
        }
        body.extend_from_slice(text);
        body.push(0);
    }
    body.extend_from_slice(rest);
    let length = i32::try_from(body.len() + HEADER_BYTES - 1)
        .map_err(|error| EncodeError::new("a statement", error))?;
    let mut message = vec![tag];
    message.extend_from_slice(&length.to_be_bytes());
    message.extend_from_slice(&body);
    Ok(message)
}

/// A piece of a statement for the simple protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text of the statement.
    Text(&'a [u8]),
    /// The next parameter's text is inserted here.
    Parameter,
}

/// Messages with holes. Writing one copies its fixed parts and the parameters, and sets the lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    fixed: Vec<u8>,
    /// Offsets in `fixed` at which parameters are inserted, ascending.
    holes: Vec<usize>,
    /// Whether each parameter has a length word of its own.
    counted: bool,
    /// The message whose length depends on the parameters: the offsets of its length word and of its end.
    length_at: usize,
    end: usize,
}

impl Template {
    /// `Query`: the simple protocol, parameters written into the statement's text.
    ///
    /// # Errors
    /// When a text has a zero byte.
    pub fn simple(pieces: &[Piece<'_>]) -> Result<Self, EncodeError> {
        let mut text = Vec::new();
        let mut holes = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(piece) => text.extend_from_slice(piece),
                Piece::Parameter => holes.push(HEADER_BYTES + text.len()),
            }
        }
        let fixed = message(b'Q', &[&text], &[])?;
        Ok(Self {
            end: fixed.len(),
            fixed,
            holes,
            counted: false,
            length_at: 1,
        })
    }

    /// `Parse` alone: gives a statement a name on the server; an empty name is the unnamed statement.
    ///
    /// # Errors
    /// When a text has a zero byte or is too long.
    pub fn parse(name: &str, sql: &[u8]) -> Result<Vec<u8>, EncodeError> {
        let no_types = 0_i16.to_be_bytes();
        message(b'P', &[name.as_bytes(), sql], &no_types)
    }

    /// `Bind`, `Execute`, `Sync`: runs the statement `name` with `parameters` parameters, all in text format and of the
    /// types that the server infers. With `describe`, the server also describes the columns of the result.
    ///
    /// # Errors
    /// When the name has a zero byte, or there are more than 65535 parameters.
    pub fn bind(name: &str, parameters: usize, describe: bool) -> Result<Self, EncodeError> {
        let values = std::iter::repeat_n((), parameters);
        let mut fixed = encode("a statement", |buffer| {
            let null = |(), _: &mut bytes::BytesMut| Ok(postgres_protocol::IsNull::Yes);
            frontend::bind("", name, [], values, null, [], buffer).map_err(|error| match error {
                frontend::BindError::Serialization(error) => std::io::Error::other(error),
                frontend::BindError::Conversion(error) => std::io::Error::other(error),
            })
        })?;
        // `Bind` ends with the nulls' length words, which become the holes, and a count of 0 result formats.
        let formats = fixed.split_off(fixed.len() - 2);
        fixed.truncate(fixed.len() - 4 * parameters);
        let holes = vec![fixed.len(); parameters];
        fixed.extend_from_slice(&formats);
        let end = fixed.len();
        fixed.extend_from_slice(&encode("a statement", |buffer| {
            if describe {
                frontend::describe(b'P', "", buffer)?;
            }
            frontend::execute("", 0, buffer)?;
            frontend::sync(buffer);
            Ok(())
        })?);
        Ok(Self {
            fixed,
            holes,
            counted: true,
            length_at: 1,
            end,
        })
    }

    /// Appends the messages to `out`. `parameter` is called with 0, 1, ... for the holes in order and appends the text
    /// of that parameter. For NULL it returns `false` and appends nothing; the simple protocol has no NULL, so there
    /// the caller appends what is to be sent instead.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>, parameter: impl FnMut(usize, &mut Vec<u8>) -> bool) {
        self.write_up_to(self.fixed.len(), out, parameter);
    }

    /// [`Template::write`] without the `Sync` at the end, for a template of [`Template::bind`].
    #[inline]
    pub fn write_unsynced(
        &self,
        out: &mut Vec<u8>,
        parameter: impl FnMut(usize, &mut Vec<u8>) -> bool,
    ) {
        debug_assert!(self.counted && self.fixed.ends_with(&SYNC));
        self.write_up_to(self.fixed.len() - SYNC.len(), out, parameter);
    }

    #[inline]
    fn write_up_to(
        &self,
        last: usize,
        out: &mut Vec<u8>,
        mut parameter: impl FnMut(usize, &mut Vec<u8>) -> bool,
    ) {
        let start = out.len();
        let mut copied = 0;
        for (index, &hole) in self.holes.iter().enumerate() {
            out.extend_from_slice(&self.fixed[copied..hole]);
            copied = hole;
            if self.counted {
                let length_at = out.len();
                out.extend_from_slice(&(-1_i32).to_be_bytes());
                if parameter(index, out) {
                    let length = (out.len() - length_at - 4) as i32;
                    out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
                }
            } else {
                parameter(index, out);
            }
        }
        out.extend_from_slice(&self.fixed[copied..self.end]);
        let length_at = start + self.length_at;
        let length = (out.len() - length_at) as i32;
        out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.fixed[self.end..last]);
    }
}

/// The statement in the `Query` or `Parse` message at the start of `messages`.
#[must_use]
pub fn statement_text(messages: &[u8]) -> Option<&[u8]> {
    let (tag, body) = (messages.first()?, messages.get(5..)?);
    let mut texts = body.split(|&byte| byte == 0);
    texts.nth(usize::from(*tag == b'P'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(template: &Template, values: &[Option<&str>]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        template.write(&mut out, |index, out| {
            values[index]
                .map(|text| out.extend_from_slice(text.as_bytes()))
                .is_some()
        });
        out.split_off("before".len())
    }

    #[test]
    fn simple_holes_take_text_and_the_length_follows() {
        let pieces = [
            Piece::Text(b"SELECT "),
            Piece::Parameter,
            Piece::Text(b" + "),
            Piece::Parameter,
        ];
        let template = Template::simple(&pieces).unwrap();
        for (a, b) in [("1", "2"), ("-5000", "100000000")] {
            let expected = encode("", |buffer| {
                frontend::query(&format!("SELECT {a} + {b}"), buffer)
            })
            .unwrap();
            assert_eq!(written(&template, &[Some(a), Some(b)]), expected);
        }
    }

    #[test]
    fn bind_equals_what_postgres_protocol_writes() {
        let cases: [&[Option<&str>]; 4] = [
            &[],
            &[Some("7")],
            &[Some(""), None, Some("-12345")],
            &[None, None],
        ];
        for (values, describe) in cases
            .into_iter()
            .flat_map(|values| [(values, false), (values, true)])
        {
            let template = Template::bind("s1", values.len(), describe).unwrap();
            let expected = encode("", |buffer| {
                let value = |value: &Option<&str>, buffer: &mut bytes::BytesMut| match value {
                    Some(text) => {
                        buffer.extend_from_slice(text.as_bytes());
                        Ok(postgres_protocol::IsNull::No)
                    }
                    None => Ok(postgres_protocol::IsNull::Yes),
                };
                assert!(frontend::bind("", "s1", [], values, value, [], buffer).is_ok());
                if describe {
                    frontend::describe(b'P', "", buffer)?;
                }
                frontend::execute("", 0, buffer)?;
                frontend::sync(buffer);
                Ok(())
            });
            let expected = expected.unwrap();
            assert_eq!(written(&template, values), expected);
            let mut unsynced = Vec::new();
            template.write_unsynced(&mut unsynced, |index, out| {
                values[index]
                    .map(|text| out.extend_from_slice(text.as_bytes()))
                    .is_some()
            });
            assert_eq!([&unsynced[..], &SYNC].concat(), expected);
        }
    }

    #[test]
    fn zero_bytes_and_too_many_parameters_are_refused() {
        assert!(Template::simple(&[Piece::Text(b"a\0b")]).is_err());
        assert!(Template::parse("", b"a\0b").is_err());
        assert!(Template::bind("", 70_000, false).is_err());
    }
}
