//! Sorts records that do not fit into memory: runs of them are sorted and written to temporary files, then merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// By start, then by session, then as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) start_us: i64,
    pub(crate) session: u32,
    pub(crate) number: u64,
}

const KEY_BYTES: usize = 20;
/// Memory for one run.
const RUN_BYTES: usize = 64 << 20;

/// Takes records in any order.
pub(crate) struct Sorter {
    folder: PathBuf,
    run_bytes: usize,
    data: Vec<u8>,
    /// Keys, and where their records are in `data`.
    records: Vec<(Key, usize, usize)>,
    runs: Vec<File>,
}

impl Sorter {
    /// `folder` is where the temporary files are, which have no name.
    pub(crate) fn new(folder: &Path) -> Self {
        Self::with_runs_of(folder, RUN_BYTES)
    }

    fn with_runs_of(folder: &Path, run_bytes: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            run_bytes,
            data: Vec::new(),
            records: Vec::new(),
            runs: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, key: Key, record: &[u8]) -> io::Result<()> {
        let begin = self.data.len();
        self.data.extend_from_slice(record);
        self.records.push((key, begin, self.data.len()));
        if self.data.len() + self.records.len() * size_of::<(Key, usize, usize)>() >= self.run_bytes
        {
            self.write_run()?;
        }
        Ok(())
    }

    /// Gives all records in their order.
    pub(crate) fn merge(
        mut self,
        mut each: impl FnMut(Key, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.runs.is_empty() {
            self.records.sort_unstable_by_key(|record| record.0);
            for &(key, begin, end) in &self.records {
                each(key, &self.data[begin..end])?;
            }
            return Ok(());
        }
        self.write_run()?;
        self.data = Vec::new();
        let mut runs: Vec<Run> = Vec::new();
        let mut next = BinaryHeap::new();
        for mut file in self.runs.drain(..) {
            file.seek(SeekFrom::Start(0))?;
            let mut run = Run {
                file: BufReader::with_capacity(256 * 1024, file),
                record: Vec::new(),
            };
            if let Some(key) = run.read()? {
                next.push(Reverse((key, runs.len())));
            }
            runs.push(run);
        }
        while let Some(Reverse((key, number))) = next.pop() {
            let run = &mut runs[number];
            each(key, &run.record)?;
            if let Some(key) = run.read()? {
                next.push(Reverse((key, number)));
            }
        }
        Ok(())
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.records.sort_unstable_by_key(|record| record.0);
        let mut file = BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(&self.folder)?);
        for &(key, begin, end) in &self.records {
            file.write_all(&key.start_us.to_le_bytes())?;
            file.write_all(&key.session.to_le_bytes())?;
            file.write_all(&key.number.to_le_bytes())?;
            file.write_all(&((end - begin) as u64).to_le_bytes())?;
            file.write_all(&self.data[begin..end])?;
        }
        self.runs
            .push(file.into_inner().map_err(io::IntoInnerError::into_error)?);
        self.data.clear();
        self.records.clear();
        Ok(())
    }
}

struct Run {
    file: BufReader<File>,
    record: Vec<u8>,
}

impl Run {
    /// Reads the next record; None at the end.
    fn read(&mut self) -> io::Result<Option<Key>> {
        let mut head = [0; KEY_BYTES + 8];
        match self.file.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let number = |from: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&head[from..from + 8]);
            u64::from_le_bytes(bytes)
        };
        let mut session = [0; 4];
        session.copy_from_slice(&head[8..12]);
        self.record.resize(number(KEY_BYTES) as usize, 0);
        self.file.read_exact(&mut self.record)?;
        Ok(Some(Key {
            start_us: number(0) as i64,
            session: u32::from_le_bytes(session),
            number: number(12),
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_come_in_the_order_of_their_keys(
            keys in proptest::collection::vec((-50_i64..50, 0_u32..4), 0..200),
            run_bytes in prop_oneof![Just(1_usize), Just(300), Just(1 << 20)],
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut sorter = Sorter::with_runs_of(folder.path(), run_bytes);
            let mut expected = Vec::new();
            for (number, &(start_us, session)) in keys.iter().enumerate() {
                let key = Key { start_us, session, number: number as u64 };
                let record = format!("record {number}").repeat(number % 3).into_bytes();
                sorter.push(key, &record).unwrap();
                expected.push((key, record));
            }
            expected.sort_by_key(|one| one.0);
            let mut found = Vec::new();
            sorter.merge(|key, record| { found.push((key, record.to_vec())); Ok(()) }).unwrap();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}
