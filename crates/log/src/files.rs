//! The files of a log: plain or compressed, recognised by their first bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use serde::Serialize;

use crate::error::LogError;

const BUFFER_BYTES: usize = 256 * 1024;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

/// An open file: its content without compression, and its size with it.
pub(crate) struct LogFile {
    pub(crate) content: Box<dyn Read>,
    pub(crate) compression: Compression,
    pub(crate) size_bytes: u64,
}

/// Opens a regular file.
pub(crate) fn open(path: &Path) -> Result<LogFile, LogError> {
    let fail = || LogError::io(path);
    // Before it is opened: who opens a FIFO waits for its writer.
    let metadata = std::fs::metadata(path).map_err(fail())?;
    if !metadata.is_file() {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        return Err(fail()(source));
    }
    let file = File::open(path).map_err(fail())?;
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let compression = match reader.fill_buf().map_err(fail())? {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
        _ => Compression::None,
    };
    Ok(LogFile {
        content: match compression {
            Compression::None => Box::new(reader),
            Compression::Gzip => Box::new(MultiGzDecoder::new(reader)),
            Compression::Zstd => Box::new(Frames(Some(FrameOrRest::Rest(reader)))),
        },
        compression,
        size_bytes: metadata.len(),
    })
}

/// The frames of a zstd file, one after another: the decoder reads one.
struct Frames(Option<FrameOrRest>);

enum FrameOrRest {
    Frame(Box<StreamingDecoder<BufReader<File>, ruzstd::decoding::FrameDecoder>>),
    Rest(BufReader<File>),
}

impl Read for Frames {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.take() {
                None => return Ok(0),
                Some(FrameOrRest::Rest(mut rest)) => {
                    if rest.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let frame = StreamingDecoder::new(rest).map_err(io::Error::other)?;
                    self.0 = Some(FrameOrRest::Frame(Box::new(frame)));
                }
                Some(FrameOrRest::Frame(mut frame)) => {
                    let read = frame.read(into)?;
                    if read > 0 || into.is_empty() {
                        self.0 = Some(FrameOrRest::Frame(frame));
                        return Ok(read);
                    }
                    self.0 = Some(FrameOrRest::Rest(frame.into_inner()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression as Level;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn content_of(bytes: &[u8]) -> (Compression, String) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut opened = open(file.path()).unwrap();
        let mut content = String::new();
        opened.content.read_to_string(&mut content).unwrap();
        assert_eq!(opened.size_bytes, bytes.len() as u64);
        (opened.compression, content)
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &str) -> Vec<u8> {
        compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
    }

    #[test]
    fn files_are_read_by_their_content() {
        assert_eq!(
            content_of(b"plain\n"),
            (Compression::None, "plain\n".into())
        );
        assert_eq!(content_of(b""), (Compression::None, String::new()));
        assert_eq!(
            content_of(&gzip("a\nb\n")),
            (Compression::Gzip, "a\nb\n".into())
        );
        assert_eq!(
            content_of(&zstd("a\nb\n")),
            (Compression::Zstd, "a\nb\n".into())
        );
    }

    #[test]
    fn members_and_frames_follow_one_another() {
        assert_eq!(content_of(&[gzip("a\n"), gzip("b\n")].concat()).1, "a\nb\n");
        assert_eq!(content_of(&[zstd("a\n"), zstd("b\n")].concat()).1, "a\nb\n");
    }

    #[test]
    fn a_file_that_ends_too_early_is_an_error() {
        let whole = gzip(&"text ".repeat(1000));
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&whole[..whole.len() / 2]).unwrap();
        let mut content = Vec::new();
        assert!(
            open(file.path())
                .unwrap()
                .content
                .read_to_end(&mut content)
                .is_err()
        );
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let Err(error) = open(folder.path()) else {
            panic!("a directory was opened");
        };
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
}
