//! The recorder: what happens to the disk is copied to memory while the request is served, and a thread writes it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

use super::format::{BASE, DATA, Header, RECORD_BYTES, RECORDS, Record, Step};
use crate::error::DiskError;
use crate::model::Event;

/// What may wait to be written: requests wait when a slow place for the recording lets it grow to this.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// The writer is woken up when this much waits, and otherwise looks at intervals.
const WAKE_BYTES: usize = 1 << 20;
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The state of a recording, as a disk's status shows it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RecordingStatus {
    pub(crate) folder: PathBuf,
    pub(crate) records: u64,
    pub(crate) data_bytes: u64,
    /// The reason why recording has stopped.
    pub(crate) error: Option<String>,
}

/// The files of a recording that begins.
#[derive(Debug)]
pub(crate) struct NewFiles {
    pub(crate) folder: PathBuf,
    pub(crate) base: File,
    records: File,
    data: File,
}

impl NewFiles {
    /// Removes them, since the recording cannot begin.
    pub(crate) fn remove(self) {
        for name in [BASE, RECORDS, DATA] {
            let _ = std::fs::remove_file(self.folder.join(name)); // what stays is in the way of the next one, which says so
        }
    }

    /// Makes the files in `folder`, which has to be there and to have none of them.
    pub(crate) fn create(folder: &Path) -> Result<Self, DiskError> {
        let create = |name: &str| {
            let path = folder.join(name);
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .map_err(DiskError::io("create", path))
        };
        Ok(Self {
            folder: folder.into(),
            base: create(BASE)?,
            records: create(RECORDS)?,
            data: create(DATA)?,
        })
    }
}

#[derive(Debug, Default)]
struct Queue {
    records: Vec<u8>,
    data: Vec<u8>,
    closed: bool,
    error: Option<String>,
}

impl Queue {
    fn bytes(&self) -> usize {
        self.records.len() + self.data.len()
    }
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    emptied: Condvar,
}

/// Writes a recording.
#[derive(Debug)]
pub(crate) struct Recorder {
    folder: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    records: u64,
    data_bytes: u64,
}

impl Recorder {
    pub(crate) fn start(files: NewFiles, header: &Header) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let NewFiles {
            folder,
            mut records,
            data,
            ..
        } = files;
        records.write_all(&header.encode())?; // at once, so that it is a recording when the start is answered
        let (queue, place) = (Arc::clone(&shared), folder.clone());
        let thread = plinth_thread::spawn_exact("disk-recorder", move || {
            if let Err(error) = queue.write_all(&records, &data) {
                let place = place.display();
                queue.fail(format!("cannot write to the recording in {place}: {error}"));
            }
        })?;
        Ok(Self {
            folder,
            shared,
            thread: Some(thread),
            records: 0,
            data_bytes: 0,
        })
    }

    /// Records what has happened; `bytes` are those of a write.
    pub(crate) fn push(&mut self, event: &Event, bytes: &[u8]) {
        self.add(Step::Event(*event), bytes);
    }

    /// Stops recording, for this reason.
    pub(crate) fn fail(&self, error: String) {
        self.shared.fail(error);
    }

    pub(crate) fn status(&self) -> RecordingStatus {
        RecordingStatus {
            folder: self.folder.clone(),
            records: self.records,
            data_bytes: self.data_bytes,
            error: self.shared.queue().error.clone(),
        }
    }

    /// Writes what is left. Afterwards the files are complete, unless the status has an error.
    pub(crate) fn stop(mut self) -> RecordingStatus {
        let records = self.records;
        self.add(Step::End, &[]);
        self.records = records; // the end is not counted: it is no event
        self.close();
        self.status()
    }

    fn add(&mut self, step: Step, bytes: &[u8]) {
        let data_crc = crc32fast::hash(bytes);
        let mut queue = self.shared.queue();
        while queue.bytes() > MAX_QUEUED_BYTES && queue.error.is_none() {
            queue = self
                .shared
                .emptied
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if queue.error.is_some() {
            return;
        }
        let record = Record {
            time_ns: plinth_thread::monotonic_ns(),
            step,
            position: self.data_bytes,
            data_crc,
        };
        let asleep = queue.bytes() < WAKE_BYTES;
        queue
            .records
            .extend_from_slice(&record.encode(self.records));
        queue.data.extend_from_slice(bytes);
        let wake = asleep && queue.bytes() >= WAKE_BYTES; // once is enough
        drop(queue);
        self.records += 1;
        self.data_bytes += bytes.len() as u64;
        if wake {
            self.shared.filled.notify_one();
        }
    }

    fn close(&mut self) {
        self.shared.queue().closed = true;
        self.shared.filled.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it does not panic, and what failed is in the queue
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, error: String) {
        let mut queue = self.queue();
        queue.error.get_or_insert(error);
        queue.records = Vec::new();
        queue.data = Vec::new();
        drop(queue);
        self.emptied.notify_all();
    }

    /// Writes what is queued until the queue is closed, or has failed.
    fn write_all(&self, mut records_file: &File, mut data_file: &File) -> io::Result<()> {
        let (mut records, mut data) = (Vec::new(), Vec::new());
        loop {
            let last = self.take(&mut records, &mut data);
            // A record is written after its data, so that what there are records of is there. Where data did not fit, the
            // records of the part that did are worth having; a reader ends at the first whose data is not there.
            let data_written = data_file.write_all(&data);
            records_file.write_all(&records).and(data_written)?;
            if last {
                return Ok(());
            }
        }
    }

    /// Waits for something to write, and exchanges it for what has been written. Returns whether it is the last.
    fn take(&self, records: &mut Vec<u8>, data: &mut Vec<u8>) -> bool {
        records.clear();
        data.clear();
        let mut queue = self.queue();
        while !queue.closed && queue.error.is_none() && queue.bytes() < WAKE_BYTES {
            let (woken, waited) = self
                .filled
                .wait_timeout(queue, LOOK_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            if waited.timed_out() && queue.bytes() > 0 {
                break;
            }
        }
        std::mem::swap(&mut queue.records, records);
        std::mem::swap(&mut queue.data, data);
        let last = queue.closed || queue.error.is_some();
        drop(queue);
        self.emptied.notify_all();
        debug_assert!(records.len().is_multiple_of(RECORD_BYTES));
        last
    }
}
