//! A page load, and the task of its threads.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plinth_config::ConfigError;
use plinth_connect::ConnectError;
use serde::Serialize;

use crate::control;
use crate::error::RunError;
use crate::pages::config::PageConfig;
use crate::pages::counting::Counting;
use crate::pages::failure::{PageFailure, PieceError};
use crate::pages::file::{NewFile, Part, sync_folder};
use crate::pages::page::{PAGE_BYTES, Page};
use crate::pages::relation::{FillScratch, Fork, Planned, seal};
use crate::pages::segment::{Access, SEGMENT_BLOCKS, Segment, piece_of, segments};
use crate::pool::{Opener, Task, WorkerPool};
use crate::report;
use crate::table::Table;

type Control = control::Control<PageFailure>;
type Report = report::Report<PageFailure>;

/// Pages that are filled before they are written: half a MiB, which a processor's cache holds.
const WRITE_BLOCKS: usize = 64;

/// The progress of a page load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PageProgress {
    /// Rows written: the share of all bytes that are written, those of keys included.
    pub rows_done: u64,
    /// Rows to write.
    pub rows_total: u64,
    /// The number of completed rows that existed before.
    pub rows_kept: u64,
    /// Rows whose pages are counted, which comes before any is written.
    pub rows_counted: u64,
    /// Rows whose pages have to be counted: those of tables whose rows differ in width.
    pub rows_to_count: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Whether all threads have ended.
    pub finished: bool,
}

/// The result of a page load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageResult {
    /// Rows in complete files of the heap, including those that were there before.
    pub rows: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// From the start of the threads to the end of the last one.
    pub elapsed_ns: u64,
    /// CPU time of the writer itself, in the program.
    pub user_cpu_ns: u64,
    /// CPU time of the writer itself, in the kernel.
    pub system_cpu_ns: u64,
    /// The load was stopped before its work was done.
    pub interrupted: bool,
    /// Failures of threads, without the withdrawals that they caused.
    pub errors: Vec<PageFailure>,
}

/// A page load and its threads. May be used from several threads.
#[derive(Debug)]
pub struct PageRun {
    pool: WorkerPool<Writing>,
}

impl PageRun {
    /// Checks the configuration and works out the pages; touches no file.
    ///
    /// # Errors
    /// The first key that is wrong; a table that cannot be written as pages.
    pub fn new(config: PageConfig) -> Result<Self, ConfigError> {
        Self::with_segments(config, SEGMENT_BLOCKS)
    }

    pub(crate) fn with_segments(
        config: PageConfig,
        segment_blocks: u64,
    ) -> Result<Self, ConfigError> {
        let writing = Writing::new(config, segment_blocks)?;
        Ok(Self {
            pool: WorkerPool::new(writing),
        })
    }

    /// Starts to write, in threads of its own. The server that the files belong to must not run.
    ///
    /// # Errors
    /// When it was started before, or a thread cannot be.
    pub fn start(&self, keep_waiting: impl FnMut() -> bool) -> Result<(), RunError> {
        self.pool.start(keep_waiting)
    }

    /// Its progress.
    #[must_use]
    pub fn progress(&self) -> PageProgress {
        let task = self.pool.task();
        let counts = self.pool.counts();
        let kept = task.kept_bytes.load(Relaxed);
        let (rows_counted, rows_to_count) = task.counting.rows();
        PageProgress {
            rows_done: task.rows_in(counts.bytes + kept),
            rows_total: task.rows_total(),
            rows_kept: task.rows_in(kept),
            rows_counted,
            rows_to_count,
            bytes_written: counts.bytes,
            finished: counts.threads_open == 0,
        }
    }

    /// Ends it: files that are not whole are removed. Returns at once.
    pub fn stop(&self) {
        self.pool.stop();
    }

    /// Waits at most `timeout` for it to end. Returns whether it has. `keep_waiting` is polled.
    pub fn wait(&self, timeout: Duration, keep_waiting: impl FnMut() -> bool) -> bool {
        self.pool.wait(timeout, keep_waiting)
    }

    /// The result, once it has ended.
    ///
    /// # Errors
    /// When it has not, or when a thread broke.
    pub fn result(&self) -> Result<PageResult, RunError> {
        let sum = self.pool.sum()?;
        Ok(PageResult {
            rows: sum.rows,
            bytes_written: sum.bytes,
            elapsed_ns: sum.elapsed_ns,
            user_cpu_ns: sum.user_cpu_ns,
            system_cpu_ns: sum.system_cpu_ns,
            interrupted: sum.interrupted,
            errors: sum.failures.clone(),
        })
    }
}

/// The task of the threads.
#[derive(Debug)]
struct Writing {
    threads: usize,
    checksums: bool,
    tables: Vec<Box<dyn Table>>,
    relations: Vec<Planned>,
    counting: Counting,
    segment_blocks: u64,
    /// Known once the pages of all relations are.
    files: OnceLock<Files>,
    kept_bytes: AtomicU64,
}

/// What is written.
#[derive(Debug)]
struct Files {
    segments: Vec<Segment>,
    folders: BTreeSet<PathBuf>,
    bytes: u64,
}

/// Buffers that a thread reuses from piece to piece.
struct Scratch {
    pages: Vec<u8>,
    fill: FillScratch,
    /// The piece that the thread wrote last, which the kernel may still be writing to the disk.
    under_way: Option<(Arc<NewFile>, Part)>,
}

impl Files {
    fn of(relations: &[Planned], segment_blocks: u64) -> Self {
        let segments = segments(relations, segment_blocks);
        let folders = segments.iter().filter_map(|segment| segment.path.parent());
        Self {
            folders: folders.map(Path::to_owned).collect(),
            bytes: segments.iter().map(Segment::bytes).sum(),
            segments,
        }
    }
}

impl Writing {
    fn new(config: PageConfig, segment_blocks: u64) -> Result<Self, ConfigError> {
        config.validate()?;
        let tables = config.generator.tables();
        let mut relations = Vec::new();
        for relation in config.relations {
            if relation.rows > 0 {
                let table = tables[relation.table].as_ref();
                relations.push(Planned::new(relations.len(), relation, table)?);
            }
        }
        let counting = Counting::new(&relations);
        let files = OnceLock::new();
        if !counting.is_needed() {
            files.get_or_init(|| Files::of(&relations, segment_blocks));
        }
        Ok(Self {
            threads: config.threads,
            checksums: config.checksums,
            tables,
            relations,
            counting,
            segment_blocks,
            files,
            kept_bytes: AtomicU64::new(0),
        })
    }

    fn rows_total(&self) -> u64 {
        let rows = self.relations.iter().map(|planned| planned.relation.rows);
        rows.sum()
    }

    /// The share of all rows that so many bytes are of all bytes; none before these are known.
    fn rows_in(&self, bytes: u64) -> u64 {
        let total = self.files.get().map_or(0, |files| files.bytes);
        (u128::from(self.rows_total()) * u128::from(bytes) / u128::from(total.max(1))) as u64
    }

    fn table(&self, planned: &Planned) -> &dyn Table {
        self.tables[planned.relation.table].as_ref()
    }

    /// Counts pages with the other threads, until all are counted and the files are known.
    ///
    /// # Errors
    /// What failed, and the number of the relation.
    fn count(
        &self,
        scratch: &mut FillScratch,
        control: &Control,
    ) -> Result<(), (usize, PieceError)> {
        while let Some((number, chunk)) = self.counting.take() {
            if control.is_withdrawing() {
                return Err((number, PieceError::Withdrawn));
            }
            let planned = &self.relations[number];
            let counted = planned.count(chunk, self.table(planned), scratch);
            if self
                .counting
                .counted(counted.map_err(|error| (number, error))?)
            {
                self.lay_out()?;
            }
        }
        if self.files.get().is_some() || self.counting.wait(|| control.is_withdrawing()) {
            Ok(())
        } else {
            Err((0, PieceError::Withdrawn))
        }
    }

    /// Works out the files once all pages are counted, and lets the other threads write.
    fn lay_out(&self) -> Result<(), (usize, PieceError)> {
        for (number, planned) in self.relations.iter().enumerate() {
            planned.place_chunks();
            if let Some(problem) = planned.problem() {
                return Err((number, PieceError::Unsupported(problem)));
            }
        }
        self.files
            .get_or_init(|| Files::of(&self.relations, self.segment_blocks));
        self.counting.end();
        Ok(())
    }

    /// Writes pieces until none is left, and makes the names of the files durable.
    fn write(&self, files: &Files, scratch: &mut Scratch, control: &Control, report: &mut Report) {
        while let Some((segment, blocks)) = piece_of(&files.segments, control.take_piece() as u64) {
            match self.write_piece(segment, blocks, scratch, control) {
                Ok(rows) => report.rows += rows,
                Err(error) => {
                    segment.abandon();
                    let name = &self.relations[segment.relation].relation.name;
                    report.failure = error.failure(name, &segment.path);
                    report.is_withdrawn = report.failure.is_none();
                    return;
                }
            }
        }
        // Each thread does it: the last one makes the names of all files durable.
        for folder in &files.folders {
            if let Err(error) = sync_folder(folder) {
                report.failure = error.failure("all tables", folder);
            }
        }
    }

    fn write_piece(
        &self,
        segment: &Segment,
        blocks: std::ops::Range<u64>,
        scratch: &mut Scratch,
        control: &Control,
    ) -> Result<u64, PieceError> {
        let planned = &self.relations[segment.relation];
        let file = match segment.access(&planned.relation.heap)? {
            Access::Write(file) => file,
            Access::Kept { is_first: false } => return Ok(0),
            Access::Kept { is_first: true } => {
                self.kept_bytes.fetch_add(segment.bytes(), Relaxed);
                return Ok(segment.rows(planned));
            }
        };
        let mut block = blocks.start;
        while block < blocks.end {
            if control.is_withdrawing() {
                return Err(PieceError::Withdrawn);
            }
            let count = WRITE_BLOCKS.min((blocks.end - block) as usize);
            self.fill(segment, block, count, scratch)?;
            let bytes = &scratch.pages[..count * PAGE_BYTES];
            file.write(in_file(segment, block), bytes)?;
            control.count(0, bytes.len());
            block += count as u64;
        }
        let part = Part {
            at: in_file(segment, blocks.start),
            bytes: (blocks.end - blocks.start) * PAGE_BYTES as u64,
        };
        scratch.flush(file, part)?;
        let is_whole = segment.piece_written()?;
        Ok(if is_whole { segment.rows(planned) } else { 0 })
    }

    /// Fills the first `count` pages of `scratch`.
    fn fill(
        &self,
        segment: &Segment,
        first: u64,
        count: usize,
        scratch: &mut Scratch,
    ) -> Result<(), PieceError> {
        let planned = &self.relations[segment.relation];
        let table = self.table(planned);
        let (pages, _) = scratch.pages.as_chunks_mut::<PAGE_BYTES>();
        for (block, page) in (first..).zip(&mut pages[..count]) {
            if segment.fork == Fork::Index && block == 0 {
                read_first_page(&segment.path, page)?;
            }
            planned.fill(segment.fork, block, table, page, &mut scratch.fill)?;
            seal(page, block, self.checksums);
        }
        Ok(())
    }
}

impl Task for Writing {
    type Failure = PageFailure;
    type Session = ();

    fn threads(&self) -> usize {
        self.threads
    }

    fn opener(&self) -> Result<Opener<()>, ConnectError> {
        Ok(Arc::new(|| Ok(())))
    }

    fn work(&self, _: usize, (): (), control: &Control, report: &mut Report) {
        let mut scratch = Scratch {
            pages: vec![0; WRITE_BLOCKS * PAGE_BYTES],
            fill: FillScratch::default(),
            under_way: None,
        };
        let counted = self.count(&mut scratch.fill, control);
        match (counted, self.files.get()) {
            (Ok(()), Some(files)) => self.write(files, &mut scratch, control, report),
            (Err((number, error)), _) => {
                let relation = &self.relations[number].relation;
                report.failure = error.failure(&relation.name, &relation.heap);
                report.is_withdrawn = report.failure.is_none();
            }
            (Ok(()), None) => report.is_withdrawn = true,
        }
    }
}

impl Scratch {
    /// Begins to write a piece to the disk, and waits for the one before it in the same file.
    fn flush(&mut self, file: Arc<NewFile>, part: Part) -> Result<(), PieceError> {
        let before = self.under_way.take();
        let same = before.filter(|(earlier, _)| Arc::ptr_eq(earlier, &file));
        file.flush(part, same.map(|(_, part)| part))?;
        self.under_way = Some((file, part));
        Ok(())
    }
}

/// The position of a page in its file.
fn in_file(segment: &Segment, block: u64) -> u64 {
    (block - segment.blocks.start) * PAGE_BYTES as u64
}

fn read_first_page(path: &Path, page: &mut Page) -> Result<(), PieceError> {
    let read = File::open(path).and_then(|file| file.read_exact_at(page, 0));
    read.map_err(|error| PieceError::Io("read the metapage of", error))
}
