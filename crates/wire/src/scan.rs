//! Splits the server's bytes into frames. Bodies are not parsed here. Of a frame that arrives in pieces only the number
//! of bytes to skip is kept, or, for the few kinds that are read, its first bytes.

use thiserror::Error;

/// Tag and length.
const HEADER_BYTES: usize = 5;

/// The part of the body of a split frame that is kept; longer bodies are truncated to this.
pub const KEPT_BYTES: usize = 64 * 1024;

/// The same for results, if they are requested: the names of columns, and rows.
pub const KEPT_ROW_BYTES: usize = 16 * 1024 * 1024;

/// libpq's limit for the kinds of messages that are never long (`pqParseInput3`): a longer one means that the stream is
/// out of step.
const LONGEST_SHORT_MESSAGE: usize = 30_000;

/// A message from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its kind: `b'Z'` is `ReadyForQuery`.
    pub tag: u8,
    /// The bytes after the length word. Complete when the frame arrived in one piece. Of a frame that arrived in
    /// several, the first [`KEPT_BYTES`] of the kinds that the client reads (`E N R S K Z v`), the first
    /// [`KEPT_ROW_BYTES`] of results (`T D`) if they are requested, and nothing of all others.
    pub body: &'a [u8],
}

/// Bytes that are not a message of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// A kind of message that no server sends.
    #[error("unknown message type 0x{0:02x}")]
    UnknownTag(u8),
    /// A length that this kind of message cannot have.
    #[error("message '{}' with an impossible length of {length} bytes", *.tag as char)]
    Length {
        /// Kind of the message.
        tag: u8,
        /// The length word, as a signed number.
        length: i32,
    },
}

/// The position of a connection in the stream of frames. Holds at most [`KEPT_BYTES`], or [`KEPT_ROW_BYTES`] if results
/// are requested.
#[derive(Debug, Clone, Default)]
pub struct Scanner {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// Bytes of the current frame's body that have not arrived yet; valid once the header is complete.
    missing: usize,
    kept: Vec<u8>,
    keeps_rows: bool,
}

impl Scanner {
    /// At the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to keep results (`T D`) that come in several pieces, from the next frame on.
    #[inline]
    pub fn keep_rows(&mut self, keep: bool) {
        self.keeps_rows = keep;
    }

    /// Takes the next frame off the front of `input`; `None` when `input` is used up.
    ///
    /// # Errors
    /// When the bytes do not follow the protocol; the connection cannot be used any more.
    #[inline]
    pub fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Frame<'s>>, FrameError> {
        match self.next_whole(input)? {
            None if input.is_empty() => Ok(None),
            None => self.next_split(input),
            whole => Ok(whole),
        }
    }

    /// [`Scanner::next`] for a frame that is completely in `input`, which is all that it borrows. `None` otherwise.
    ///
    /// # Errors
    /// As [`Scanner::next`].
    #[inline(always)] // measured: a call costs a third as much again
    pub fn next_whole<'i>(&self, input: &mut &'i [u8]) -> Result<Option<Frame<'i>>, FrameError> {
        let Some((header, rest)) = input.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        if self.header_bytes > 0 {
            return Ok(None);
        }
        let tag = header[0];
        let whole = rest.split_at_checked(body_length(header)?);
        Ok(whole.map(|(body, rest)| {
            *input = rest;
            Frame { tag, body }
        }))
    }

    /// The slow path: a frame whose bytes arrive in several pieces.
    fn next_split<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Frame<'s>>, FrameError> {
        if self.header_bytes < HEADER_BYTES {
            let taken = input.len().min(HEADER_BYTES - self.header_bytes);
            let (head, rest) = input.split_at(taken);
            self.header[self.header_bytes..self.header_bytes + taken].copy_from_slice(head);
            self.header_bytes += taken;
            *input = rest;
            if self.header_bytes < HEADER_BYTES {
                return Ok(None);
            }
            self.missing = body_length(&self.header)?;
            self.kept.clear();
        }
        let tag = self.header[0];
        let (piece, rest) = input.split_at(input.len().min(self.missing));
        let room = self.kept_bytes(tag).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
        self.missing -= piece.len();
        *input = rest;
        if self.missing > 0 {
            return Ok(None);
        }
        self.header_bytes = 0;
        Ok(Some(Frame {
            tag,
            body: &self.kept,
        }))
    }

    /// The number of bytes that are kept of the body of a frame of this kind.
    fn kept_bytes(&self, tag: u8) -> usize {
        match tag {
            b'E' | b'N' | b'R' | b'S' | b'K' | b'Z' | b'v' => KEPT_BYTES,
            b'T' | b'D' if self.keeps_rows => KEPT_ROW_BYTES,
            _ => 0,
        }
    }
}

/// Length of the body according to the header, checked against the limits of its kind.
#[inline]
fn body_length(header: &[u8; HEADER_BYTES]) -> Result<usize, FrameError> {
    let [tag, length @ ..] = *header;
    let length = i32::from_be_bytes(length);
    // The length includes the length word.
    let body = length.wrapping_sub(4) as usize;
    let possible = match tag {
        b'Z' => body == 1,
        b'1' | b'2' | b'3' | b'n' | b's' | b'I' | b'c' => body == 0,
        b'D' | b'T' | b'd' | b'E' | b'N' | b'A' | b'V' => length >= 4,
        b'C' | b'S' | b'K' | b'R' | b't' | b'G' | b'H' | b'W' | b'v' => {
            length >= 4 && body <= LONGEST_SHORT_MESSAGE
        }
        _ => return Err(FrameError::UnknownTag(tag)),
    };
    if possible {
        Ok(body)
    } else {
        Err(FrameError::Length { tag, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag];
        bytes.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn a_whole_frame_is_borrowed_from_the_input() {
        let bytes = [frame(b'D', b"row"), frame(b'Z', b"I")].concat();
        let mut input = bytes.as_slice();
        let mut scanner = Scanner::new();
        assert_eq!(
            scanner.next(&mut input).unwrap(),
            Some(Frame {
                tag: b'D',
                body: b"row"
            })
        );
        assert_eq!(
            scanner.next(&mut input).unwrap(),
            Some(Frame {
                tag: b'Z',
                body: b"I"
            })
        );
        assert_eq!(scanner.next(&mut input).unwrap(), None);
    }

    #[test]
    fn a_long_row_in_pieces_is_skipped_without_being_held() {
        let mut scanner = Scanner::new();
        let header = [b'D', 0x10, 0, 0, 4];
        assert_eq!(scanner.next(&mut header.as_slice()).unwrap(), None);
        let piece = vec![0_u8; 1 << 20];
        for _ in 0..255 {
            assert_eq!(scanner.next(&mut piece.as_slice()).unwrap(), None);
        }
        assert_eq!(
            scanner.next(&mut piece.as_slice()).unwrap(),
            Some(Frame {
                tag: b'D',
                body: b""
            })
        );
        assert_eq!(scanner.kept.capacity(), 0);
    }

    #[test]
    fn a_long_error_in_pieces_is_cut() {
        let bytes = frame(b'E', &vec![b'x'; 3 * KEPT_BYTES]);
        let mut scanner = Scanner::new();
        let mut frames = 0;
        for mut piece in bytes.chunks(1000) {
            while let Some(frame) = scanner.next(&mut piece).unwrap() {
                assert_eq!(frame.body.len(), KEPT_BYTES);
                frames += 1;
            }
        }
        assert_eq!(frames, 1);
    }

    #[test]
    fn rows_in_pieces_are_kept_whole_when_they_are_asked_for() {
        let row = vec![b'x'; 3 * KEPT_BYTES];
        let bytes = frame(b'D', &row);
        let mut scanner = Scanner::new();
        for keep in [false, true, false] {
            scanner.keep_rows(keep);
            let mut bodies = Vec::new();
            for mut piece in bytes.chunks(1000) {
                while let Some(frame) = scanner.next(&mut piece).unwrap() {
                    bodies.push(frame.body.to_vec());
                }
            }
            let wanted = if keep { row.clone() } else { Vec::new() };
            assert_eq!(bodies, [wanted]);
        }
    }

    #[test]
    fn impossible_headers_are_refused() {
        let cases: [(&[u8], FrameError); 5] = [
            (
                b"HTTP/1.1 400 Bad Request",
                FrameError::Length {
                    tag: b'H',
                    length: 0x5454_502f,
                },
            ),
            (
                b"Z\0\0\0\x06II",
                FrameError::Length {
                    tag: b'Z',
                    length: 6,
                },
            ),
            (
                b"D\0\0\0\x03",
                FrameError::Length {
                    tag: b'D',
                    length: 3,
                },
            ),
            (
                b"D\xff\xff\xff\xff",
                FrameError::Length {
                    tag: b'D',
                    length: -1,
                },
            ),
            (b"\0\0\0\0\0", FrameError::UnknownTag(0)),
        ];
        for (bytes, error) in cases {
            let mut input = bytes;
            assert_eq!(Scanner::new().next(&mut input), Err(error));
        }
    }
}
