//! A recording that is read: its records, checked, and the content of the disk at any point of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::format::{BASE, DATA, Header, HeaderError, RECORD_BYTES, RECORDS, Record, Step};
use crate::error::DiskError;
use crate::model::{Content, CutMode, CutReport, Replay};

const CHUNK_BYTES: usize = 1 << 20;

/// A recording.
#[derive(Debug)]
pub struct Recording {
    folder: PathBuf,
    pub(crate) header: Header,
    pub(crate) records: Vec<Record>,
    is_complete: bool,
}

/// The content of a recorded disk after a power cut.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageConfig {
    /// The folder of the recording.
    pub recording: PathBuf,
    /// The number of records before the cut.
    pub point: u64,
    /// The writes that survived it.
    pub mode: CutMode,
    /// The seed of its random choices.
    pub seed: u64,
    /// A torn write is torn at a multiple of this, where it is more than the atomic unit of the disk.
    #[serde(default)]
    pub tear_bytes: u64,
}

/// The content of a disk at a point of a recording, after a cut of its power.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) content: Content,
    pub(crate) report: CutReport,
    pub(crate) base: File,
    pub(crate) data: File,
}

impl Recording {
    /// Reads the records of the recording in `folder`. Without their end, as a full file system or a killed daemon leaves
    /// them, they are read up to the last whole one.
    ///
    /// # Errors
    /// The file that cannot be read; that it is not a recording, of another version, or damaged before its end.
    pub fn open(folder: &Path) -> Result<Self, DiskError> {
        let path = folder.join(RECORDS);
        let mut file = open(&path)?;
        let data_bytes = length(&folder.join(DATA))?;
        let mut bytes = [0; RECORD_BYTES];
        let failed = |error| DiskError::io("read", &path)(error);
        if !read_record(&mut file, &mut bytes).map_err(failed)? {
            return Err(DiskError::NoRecording(folder.into()));
        }
        let header = Header::decode(bytes).map_err(|error| match error {
            HeaderError::NoRecording => DiskError::NoRecording(folder.into()),
            HeaderError::Damaged => DiskError::RecordingDamaged(folder.into(), "its header".into()),
            HeaderError::Version(found) => DiskError::RecordingVersion(folder.into(), found),
        })?;
        if length(&folder.join(BASE))? != header.size_bytes {
            return Err(DiskError::RecordingDamaged(
                folder.into(),
                "its base, which does not have the size of the disk".into(),
            ));
        }
        let mut recording = Self {
            folder: folder.into(),
            header,
            records: Vec::new(),
            is_complete: false,
        };
        let mut whole = io::BufReader::with_capacity(CHUNK_BYTES, file);
        recording
            .read(&mut whole, data_bytes)
            .map_err(failed)?
            .map_or(Ok(recording), Err)
    }

    /// Reads all records. Returns an error when one that is damaged is followed by one that is not.
    fn read(&mut self, file: &mut impl Read, data_bytes: u64) -> io::Result<Option<DiskError>> {
        let mut bytes = [0; RECORD_BYTES];
        let mut position = 0;
        let mut damaged = None;
        let mut number = 0;
        while read_record(file, &mut bytes)? {
            let record = Record::decode(bytes, number, self.header.size_bytes);
            match (record, damaged) {
                (Some(record), None)
                    if record.position == position
                        && record.data_bytes() <= data_bytes - position =>
                {
                    position += record.data_bytes();
                    if record.step == Step::End {
                        self.is_complete = true;
                        break;
                    }
                    self.records.push(record);
                }
                (Some(record), Some(damaged))
                    if record.position.saturating_add(record.data_bytes()) <= data_bytes =>
                {
                    let what = format!("record {damaged}");
                    return Ok(Some(DiskError::RecordingDamaged(self.folder.clone(), what)));
                }
                _ => {
                    damaged.get_or_insert(number);
                }
            }
            number += 1;
        }
        Ok(None)
    }

    /// Checks the data of all writes against their checksums, and returns how many bytes that was.
    ///
    /// # Errors
    /// The part that cannot be read or is damaged.
    pub fn verify(&self) -> Result<u64, DiskError> {
        let path = self.folder.join(DATA);
        let mut file = open(&path)?;
        let mut bytes = Vec::new();
        let mut verified = 0;
        for (number, record) in self.records.iter().enumerate() {
            let length = record.data_bytes();
            bytes.clear();
            (&mut file)
                .take(length)
                .read_to_end(&mut bytes)
                .map_err(DiskError::io("read", &path))?;
            if length > 0 && crc32fast::hash(&bytes) != record.data_crc {
                let what = format!("the data of record {number}");
                return Err(DiskError::RecordingDamaged(self.folder.clone(), what));
            }
            verified += length;
        }
        Ok(verified)
    }

    /// Whether it was stopped: otherwise what followed the last record is unknown.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The size of the disk.
    pub fn size_bytes(&self) -> u64 {
        self.header.size_bytes
    }

    /// When it began, by CLOCK_MONOTONIC.
    pub fn began_ns(&self) -> u64 {
        self.header.began_ns
    }

    /// The number of records. Point k of a recording is after its first k records.
    pub fn points(&self) -> usize {
        self.records.len()
    }

    /// The time of each record by CLOCK_MONOTONIC, and the number of its kind.
    pub fn times_and_kinds(&self) -> impl ExactSizeIterator<Item = (u64, u8)> {
        self.records
            .iter()
            .map(|record| (record.time_ns, record.step.kind()))
    }

    /// The content of the disk after a power cut that follows some of its records.
    ///
    /// # Errors
    /// That there are fewer records, or the file that cannot be opened.
    pub(crate) fn image(&self, of: &ImageConfig) -> Result<Image, DiskError> {
        let records = usize::try_from(of.point)
            .ok()
            .and_then(|point| self.records.get(..point))
            .ok_or(DiskError::NoPoint {
                folder: self.folder.clone(),
                point: of.point,
                points: self.records.len(),
            })?;
        let header = &self.header;
        let mut replay = Replay::new(header.size_bytes, header.settings, header.first);
        for record in records {
            if let Step::Event(event) = record.step {
                replay.apply(&event, record.position);
            }
        }
        let (content, report) = replay.cut(of.mode, of.seed, of.tear_bytes);
        Ok(Image {
            content,
            report,
            base: open(&self.folder.join(BASE))?,
            data: open(&self.folder.join(DATA))?,
        })
    }
}

fn open(path: &Path) -> Result<File, DiskError> {
    File::open(path).map_err(DiskError::io("open", path))
}

fn length(path: &Path) -> Result<u64, DiskError> {
    let found = path.metadata().map_err(DiskError::io("look at", path))?;
    Ok(found.len())
}

/// Reads the next 64 bytes; false when there are not as many.
fn read_record(file: &mut impl Read, bytes: &mut [u8; RECORD_BYTES]) -> io::Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
