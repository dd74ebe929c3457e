//! The ledger: the answer to each commit of this client of the database.
//!
//! A record is made before the message with the `COMMIT` is sent, and completed when the answer has come. Records are stored in
//! files that are mapped into memory, so that a store of 32 bytes is all that a record costs, and that nothing of it is lost
//! when this process is killed. `docs/internals/ledger.md` describes the format, `plinth.workload.commit_ledger` reads it.

mod added;
mod file;

use std::io;
use std::path::{Path, PathBuf};

use plinth_config::ConfigError;
use serde::Deserialize;

use crate::limits::{self, MOST_FIRST_NUMBER};
pub(crate) use added::with_ledger;
use file::{RecordFile, SLOT_BYTES};

/// Names of the variables that scripts insert by.
pub(crate) const CLIENT_VARIABLE: &str = "plinth_ledger_client";
pub(crate) const NUMBER_VARIABLE: &str = "plinth_ledger_number";

const MAGIC: &[u8; 8] = b"PLINTHLG";
const FORMAT_VERSION: u32 = 1;
const HEADER_BYTES: usize = 2 * SLOT_BYTES;
/// Where the header says that the load has ended.
const HAS_ENDED_AT: u64 = 24;

/// Where the ledger is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerConfig {
    /// An existing folder, which must not be on a disk under test. Each thread writes `THREAD.ledger` in it, which must not
    /// be there yet.
    pub folder: String,
    /// The number of each client's first transaction; later loads on the same tables continue where another has ended.
    #[serde(default = "limits::first_number")]
    pub first_number: u64,
}

impl LedgerConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.folder.is_empty() {
            return Err(ConfigError::new("ledger", "got an empty folder"));
        }
        if !(1..=MOST_FIRST_NUMBER).contains(&self.first_number) {
            let message = format!(
                "got a first_number of {}, allowed is from 1 to {MOST_FIRST_NUMBER}",
                self.first_number
            );
            return Err(ConfigError::new("ledger", message));
        }
        Ok(())
    }
}

/// The answer that a client got to a transaction. The values are those of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Sent and not answered.
    Indeterminate = 0,
    /// `COMMIT` was answered.
    Acknowledged = 1,
    /// The server warned that it has committed, and has not waited for its standby.
    LocalOnly = 2,
    /// `ROLLBACK` or an error was answered.
    Aborted = 3,
    /// `PREPARE TRANSACTION` was answered.
    Prepared = 4,
}

/// What is sent and recorded. The values are those of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// `COMMIT` or `PREPARE TRANSACTION`, of a transaction that gets a number.
    EndOfBlock = 0,
    /// `COMMIT PREPARED`, of the client's last transaction.
    CommitPrepared = 1,
    /// `ROLLBACK PREPARED`, of the client's last transaction.
    RollbackPrepared = 2,
}

/// What went wrong with a ledger's file.
#[derive(Debug)]
pub(crate) struct LedgerError {
    pub(crate) path: PathBuf,
    pub(crate) what: &'static str,
    pub(crate) source: io::Error,
}

/// The file of a thread, made but not used yet.
#[derive(Debug)]
pub(crate) struct NewLedger {
    file: RecordFile,
    thread: usize,
    threads: usize,
}

impl NewLedger {
    /// Makes the file of each of our `own` threads among `threads`, with room for its first records; nothing when no ledger is
    /// asked for.
    pub(crate) fn make_all(
        asked: Option<&LedgerConfig>,
        own: impl Iterator<Item = usize>,
        threads: usize,
    ) -> Result<Vec<Option<Self>>, LedgerError> {
        let make = |thread: usize| {
            let Some(ledger) = asked else {
                return Ok(None);
            };
            let path = Path::new(&ledger.folder).join(format!("{thread}.ledger"));
            let file = RecordFile::make(path)?;
            Ok(Some(Self {
                file,
                thread,
                threads,
            }))
        };
        own.map(make).collect()
    }

    /// Begins the file. `started_ns` is the start of the load on the monotonic clock.
    pub(crate) fn begin(
        mut self,
        started_ns: u64,
        started_unix_ns: u64,
    ) -> Result<Ledger, LedgerError> {
        let header = self.header(started_ns, started_unix_ns);
        for half in header.chunks_exact(SLOT_BYTES) {
            let mut slot = [0; SLOT_BYTES];
            slot.copy_from_slice(half);
            self.file.append(&slot)?;
        }
        Ok(Ledger {
            file: self.file,
            started_ns,
        })
    }

    fn header(&self, started_ns: u64, started_unix_ns: u64) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        header[16..20].copy_from_slice(&(SLOT_BYTES as u32).to_le_bytes());
        header[20..24].copy_from_slice(&(self.thread as u32).to_le_bytes());
        header[28..32].copy_from_slice(&(self.threads as u32).to_le_bytes());
        header[32..40].copy_from_slice(&started_ns.to_le_bytes());
        header[40..48].copy_from_slice(&started_unix_ns.to_le_bytes());
        header
    }
}

/// The ledger of a thread.
#[derive(Debug)]
pub(crate) struct Ledger {
    file: RecordFile,
    /// On the monotonic clock; times of the run count from here.
    started_ns: u64,
}

impl Ledger {
    /// Notes that a message with what is `recorded` is about to be sent; where the record is.
    #[inline]
    pub(crate) fn sent(
        &mut self,
        client: usize,
        number: u64,
        now_ns: u64,
        recorded: Recorded,
    ) -> Result<u64, LedgerError> {
        let sent_ns = self.started_ns + now_ns;
        self.file
            .append(&record(client as u32, number, sent_ns, recorded))
    }

    /// Completes a record.
    #[inline]
    pub(crate) fn answered(
        &mut self,
        slot: u64,
        class: Class,
        now_ns: u64,
    ) -> Result<(), LedgerError> {
        let answered_ns = self.started_ns + now_ns;
        self.file.write(slot, 16, &answered_ns.to_le_bytes())?;
        // Last: a class other than indeterminate has its time.
        self.file.write(slot, 28, &[class as u8])
    }

    /// The load has ended: cuts off the room that was not needed.
    pub(crate) fn finish(self) -> Result<(), LedgerError> {
        self.file.finish(HAS_ENDED_AT)
    }
}

#[inline]
fn record(client: u32, number: u64, sent_ns: u64, recorded: Recorded) -> [u8; SLOT_BYTES] {
    let mut record = [0; SLOT_BYTES];
    record[..8].copy_from_slice(&number.to_le_bytes());
    record[8..16].copy_from_slice(&sent_ns.to_le_bytes());
    record[24..28].copy_from_slice(&client.to_le_bytes());
    record[28] = Class::Indeterminate as u8;
    record[29] = recorded as u8;
    record
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn u64_at(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    fn new_ledger(folder: &Path) -> NewLedger {
        let file = RecordFile::make(folder.join("0.ledger")).unwrap();
        NewLedger {
            file,
            thread: 3,
            threads: 4,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        /// The file has all that is sent and answered, in any order, with answers that come long after.
        #[test]
        fn a_file_has_what_was_sent_and_answered(
            transactions in prop::collection::vec((0..100_usize, 0..4_u8, 0..80_000_usize), 1..60_000),
        ) {
            let folder = tempfile_folder("ledger-property");
            let mut ledger = new_ledger(&folder).begin(1_000, 77).unwrap();
            let mut slots = Vec::new();
            for (place, (client, _, late)) in transactions.iter().enumerate() {
                let slot = ledger
                    .sent(*client, place as u64 + 1, place as u64, Recorded::EndOfBlock)
                    .unwrap();
                slots.push(slot);
                // Answer one that was sent a while ago.
                if let Some(earlier) = place.checked_sub(*late) {
                    answer(&mut ledger, slots[earlier], transactions[earlier].1, earlier);
                }
            }
            for (place, slot) in slots.iter().enumerate() {
                answer(&mut ledger, *slot, transactions[place].1, place);
            }
            ledger.finish().unwrap();
            let bytes = fs::read(folder.join("0.ledger")).unwrap();
            fs::remove_dir_all(&folder).unwrap();
            prop_assert_eq!(bytes.len(), HEADER_BYTES + transactions.len() * SLOT_BYTES);
            prop_assert_eq!(&bytes[..8], MAGIC);
            prop_assert_eq!((bytes[20], bytes[24], bytes[28]), (3, 1, 4));
            for (place, (found, (client, class, _))) in
                bytes[HEADER_BYTES..].chunks_exact(SLOT_BYTES).zip(&transactions).enumerate()
            {
                let answered_ns = if *class == 0 { 0 } else { 1_000 + place as u64 + 5 };
                prop_assert_eq!(u64_at(found, 0), place as u64 + 1);
                prop_assert_eq!(u64_at(found, 8), 1_000 + place as u64);
                prop_assert_eq!(u64_at(found, 16), answered_ns);
                prop_assert_eq!(&found[24..28], &(*client as u32).to_le_bytes());
                prop_assert_eq!(found[28], *class);
            }
        }
    }

    fn answer(ledger: &mut Ledger, slot: u64, class: u8, place: usize) {
        let class = match class {
            0 => return,
            1 => Class::Acknowledged,
            2 => Class::LocalOnly,
            _ => Class::Aborted,
        };
        ledger.answered(slot, class, place as u64 + 5).unwrap();
    }

    fn tempfile_folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("plinth-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        folder
    }

    #[test]
    fn what_is_not_finished_keeps_its_records_and_says_so() {
        let folder = tempfile_folder("ledger-unfinished");
        let mut ledger = new_ledger(&folder).begin(10, 0).unwrap();
        ledger.sent(7, 1, 1, Recorded::EndOfBlock).unwrap();
        drop(ledger);
        let bytes = fs::read(folder.join("0.ledger")).unwrap();
        assert_eq!(bytes[HAS_ENDED_AT as usize], 0);
        assert_eq!(
            (
                u64_at(&bytes, HEADER_BYTES),
                u64_at(&bytes, HEADER_BYTES + 8)
            ),
            (1, 11)
        );
        assert!(
            bytes[HEADER_BYTES + SLOT_BYTES..]
                .iter()
                .all(|byte| *byte == 0)
        );
        let again = RecordFile::make(folder.join("0.ledger")).unwrap_err();
        assert_eq!(again.source.kind(), io::ErrorKind::AlreadyExists);
        fs::remove_dir_all(&folder).unwrap();
    }
}
