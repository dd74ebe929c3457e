//! A probe: the file, and the thread that measures a case while the caller waits, and may give up.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::case::{Case, Place, Sharing};
use crate::error::ProbeError;
use crate::figure::{Figure, Outcome};
use crate::own_file::OwnFile;
use crate::target::Failure;
use crate::until::Until;
use crate::{SEGMENT_BYTES, single, writers};

const LOOK_EVERY: Duration = Duration::from_millis(50);
const MOST_WRITERS: u32 = 4096;
/// `XLogFileInit` of PostgreSQL 16 and later: `pg_pwrite_zeros` gives the kernel 32 blocks of zeros at a time.
const WAL_FILL_BYTES: usize = 256 << 10;
/// For one answer of the storage. A slow disk that has taken much before may be busy for long.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// The files of a probe, each as long as a WAL segment, of random bytes. They are removed when the probe is dropped.
#[derive(Debug)]
pub struct Probe {
    directory: PathBuf,
    /// Filled as `pg_test_fsync` fills its file.
    blocks: OwnFile,
    /// Filled as PostgreSQL fills a WAL segment; made when it is first needed.
    segment: OnceLock<OwnFile>,
}

impl Probe {
    /// Makes the first file in `directory`.
    ///
    /// # Errors
    /// The directory takes no file, or not all of it; then none is left.
    pub fn create(directory: &Path) -> Result<Self, ProbeError> {
        Ok(Self {
            directory: directory.to_owned(),
            blocks: OwnFile::filled(directory, SEGMENT_BYTES, SEGMENT_BYTES as usize)?,
            segment: OnceLock::new(),
        })
    }

    /// Measures a case for `duration`, and at least one operation. `keep_waiting` is polled.
    ///
    /// # Errors
    /// The storage failed, or has not answered for a minute; the caller gave up; or the case makes no sense.
    pub fn measure(
        &self,
        case: &Case,
        duration: Duration,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Outcome, ProbeError> {
        check(case)?;
        let grown = match case.place {
            Place::BeyondEnd => Some(OwnFile::empty(&self.directory)?),
            Place::Beginning | Place::Onward => None,
        };
        let path = match (&grown, case.place) {
            (Some(grown), _) => grown.path(),
            (None, Place::Onward) => self.segment()?.path(),
            (None, _) => self.blocks.path(),
        };
        let until = Arc::new(Until::new(Instant::now() + duration));
        let receiver = measuring(path, case, &until)?;
        let result = wait(&receiver, path, &until, keep_waiting)?;
        if let Some(grown) = grown {
            grown.remove()?;
        }
        match result {
            Ok(figure) => Ok(Outcome::Figure(figure)),
            Err(Failure::Unavailable(reason)) => Ok(Outcome::Unavailable(reason)),
            Err(Failure::Error(error)) => Err(error),
        }
    }

    /// Removes the files.
    ///
    /// # Errors
    /// The error of the operating system for the first remaining file.
    pub fn remove(&self) -> Result<(), ProbeError> {
        let segment = self.segment.get().map_or(Ok(()), OwnFile::remove);
        self.blocks.remove().and(segment)
    }

    fn segment(&self) -> Result<&OwnFile, ProbeError> {
        if self.segment.get().is_none() {
            let made = OwnFile::filled(&self.directory, SEGMENT_BYTES, WAL_FILL_BYTES)?;
            // Were another thread to have made one meanwhile, this one goes again.
            let _ = self.segment.set(made);
        }
        #[allow(clippy::expect_used, reason = "it was set, now or before")]
        Ok(self.segment.get().expect("there is a segment"))
    }
}

fn check(case: &Case) -> Result<(), ProbeError> {
    let bytes = u64::from(case.block_bytes) * u64::from(case.writes);
    let wrong = if bytes == 0 || bytes > SEGMENT_BYTES {
        format!("an operation of {bytes} bytes: 1 to {SEGMENT_BYTES} are possible")
    } else if case.writers == 0 || case.writers > MOST_WRITERS {
        format!("{} writers: 1 to {MOST_WRITERS} are possible", case.writers)
    } else if case.sharing == Sharing::Alone && case.writers > 1 {
        format!("{} writers alone", case.writers)
    } else {
        return Ok(());
    };
    Err(ProbeError::Case(wrong))
}

/// Measures in a thread of its own: a call that hangs in the kernel cannot be called back.
fn measuring(
    path: &Path,
    case: &Case,
    until: &Arc<Until>,
) -> Result<Receiver<Result<Figure, Failure>>, ProbeError> {
    let (sender, receiver) = mpsc::channel();
    let (owned_path, case, until) = (path.to_owned(), case.clone(), Arc::clone(until));
    thread::Builder::new()
        .name("probe".to_owned())
        .spawn(move || {
            let signals = plinth_thread::block_signals()
                .map_err(|error| ProbeError::io("measure on", &owned_path)(error).into());
            let result = signals.and_then(|()| match case.sharing {
                Sharing::Alone => single::measure(&owned_path, &case, &until),
                Sharing::Group | Sharing::Each => writers::measure(&owned_path, &case, &until),
            });
            // Who has given up does not listen any more.
            let _ = sender.send(result);
        })
        .map_err(ProbeError::io("start the thread that measures", path))?;
    Ok(receiver)
}

fn wait(
    receiver: &Receiver<Result<Figure, Failure>>,
    path: &Path,
    until: &Until,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<Result<Figure, Failure>, ProbeError> {
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(ProbeError::Case("the measuring thread died".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if !keep_waiting() {
            until.end();
            // The operation under way ends in a moment, and the file is removed after it.
            let _ = receiver.recv_timeout(Duration::from_secs(5));
            return Err(ProbeError::Interrupted);
        }
        if Instant::now() > until.ends + HANG_TIMEOUT {
            until.end();
            return Err(ProbeError::Hangs {
                path: path.to_owned(),
                timeout: HANG_TIMEOUT,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Descriptor, Group, Method, Options, plan};

    fn every_case() -> Vec<Case> {
        plan(&Options {
            methods: Method::ALL.to_vec(),
            groups: Group::ALL.to_vec(),
            writers: vec![1, 5],
            direct: false,
            block_bytes: crate::WAL_BLOCK_BYTES,
        })
    }

    fn files(directory: &Path) -> usize {
        directory.read_dir().unwrap().count()
    }

    #[test]
    fn every_case_has_a_figure_or_a_reason_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let probe = Probe::create(folder.path()).unwrap();
        for case in every_case() {
            let outcome = probe.measure(&case, Duration::from_millis(5), &mut || true);
            match outcome.unwrap() {
                Outcome::Figure(figure) => {
                    assert!(figure.ops > 0 && figure.elapsed_ns > 0, "{case:?}");
                    assert!(figure.min_ns <= figure.max_ns && figure.flushes <= figure.ops);
                    let counted: u64 = figure.buckets.iter().map(|&(_, count)| count).sum();
                    assert_eq!(counted, figure.ops, "{case:?}");
                    assert_ne!(case.method, Method::FsyncWritethrough);
                }
                Outcome::Unavailable(reason) => assert!(!reason.is_empty(), "{case:?}"),
            }
            let made = 1 + usize::from(probe.segment.get().is_some());
            assert_eq!(files(folder.path()), made, "{case:?}");
        }
        drop(probe);
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn the_segment_keeps_its_length_and_a_growing_file_stays_within_one() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let probe = Probe::create(folder.path()).unwrap();
        for case in every_case() {
            if !case.direct {
                let duration = Duration::from_millis(20);
                probe.measure(&case, duration, &mut || true).unwrap();
            }
        }
        for file in [&probe.blocks, probe.segment.get().unwrap()] {
            assert_eq!(file.path().metadata().unwrap().len(), SEGMENT_BYTES);
        }
    }

    #[test]
    fn who_gives_up_waits_no_longer_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let probe = Probe::create(folder.path()).unwrap();
        let case = &every_case()[1];
        let result = probe.measure(case, Duration::from_secs(3600), &mut || false);
        assert!(matches!(result, Err(ProbeError::Interrupted)), "{result:?}");
        drop(probe);
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn a_place_that_takes_no_file_is_reported_with_the_systems_message() {
        let error = Probe::create(Path::new("/proc")).unwrap_err();
        assert!(error.errno().is_some() && error.path().is_some(), "{error}");
    }

    #[test]
    fn cases_that_make_no_sense_are_refused() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let probe = Probe::create(folder.path()).unwrap();
        let usual = every_case().remove(1);
        assert_eq!(usual.descriptor, Descriptor::Kept);
        for wrong in [
            Case {
                block_bytes: 0,
                ..usual.clone()
            },
            Case {
                writes: 4096,
                ..usual.clone()
            },
            Case {
                writers: 0,
                sharing: Sharing::Each,
                ..usual.clone()
            },
            Case {
                writers: 9999,
                sharing: Sharing::Each,
                ..usual.clone()
            },
            Case {
                writers: 2,
                ..usual.clone()
            },
        ] {
            let result = probe.measure(&wrong, Duration::ZERO, &mut || true);
            assert!(matches!(result, Err(ProbeError::Case(_))), "{wrong:?}");
        }
    }
}
