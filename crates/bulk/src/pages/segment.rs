//! A file of a relation's fork: at most 1 GiB, written in pieces by several threads, then put in place whole.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::pages::failure::PieceError;
use crate::pages::file::NewFile;
use crate::pages::page::PAGE_BYTES;
use crate::pages::relation::{Fork, Planned, with_suffix};

/// `RELSEG_SIZE`: 1 GiB. Servers that were built with another are refused by the sizes of their files.
pub(crate) const SEGMENT_BLOCKS: u64 = 131_072;
/// The size of a piece, which one thread writes: 4 MiB.
pub(crate) const PIECE_BLOCKS: u64 = 512;

/// A file.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The number of the relation in the plan.
    pub(crate) relation: usize,
    pub(crate) fork: Fork,
    pub(crate) path: PathBuf,
    /// The pages of the fork in this segment.
    pub(crate) blocks: Range<u64>,
    /// Its first piece, among those of all files.
    first_piece: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Untouched,
    Open {
        file: Arc<NewFile>,
        pieces_left: u64,
    },
    /// The segment was complete before this load.
    Kept,
    Whole,
    Abandoned,
}

/// The action of a thread for a piece.
#[derive(Debug)]
pub(crate) enum Access {
    Write(Arc<NewFile>),
    /// It was there before. Whether this is the first piece of it that is asked for.
    Kept {
        is_first: bool,
    },
}

/// The files of relations, and the pieces that they are written in, in order.
pub(crate) fn segments(relations: &[Planned], segment_blocks: u64) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut first_piece = 0;
    for (number, relation) in relations.iter().enumerate() {
        for fork in relation.forks() {
            let (path, blocks) = (relation.path(fork), relation.blocks(fork));
            for (segment, start) in (0..blocks).step_by(segment_blocks as usize).enumerate() {
                let segment = Segment {
                    relation: number,
                    fork,
                    path: segment_path(&path, segment),
                    blocks: start..blocks.min(start + segment_blocks),
                    first_piece,
                    state: Mutex::new(State::Untouched),
                };
                first_piece += segment.pieces();
                segments.push(segment);
            }
        }
    }
    segments
}

/// The file and the pages of a piece; `None` behind the last.
pub(crate) fn piece_of(segments: &[Segment], piece: u64) -> Option<(&Segment, Range<u64>)> {
    let number = segments.partition_point(|segment| segment.first_piece <= piece);
    let segment = &segments[number.checked_sub(1)?];
    let start = segment.blocks.start + (piece - segment.first_piece) * PIECE_BLOCKS;
    let blocks = start..segment.blocks.end.min(start + PIECE_BLOCKS);
    (!blocks.is_empty()).then_some((segment, blocks))
}

fn segment_path(first: &Path, number: usize) -> PathBuf {
    match number {
        0 => first.to_owned(),
        number => with_suffix(first, &format!(".{number}")),
    }
}

impl Segment {
    fn pieces(&self) -> u64 {
        (self.blocks.end - self.blocks.start).div_ceil(PIECE_BLOCKS)
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.blocks.end - self.blocks.start) * PAGE_BYTES as u64
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The action for a piece of the segment. The first call checks whether the file exists.
    pub(crate) fn access(&self, heap: &Path) -> Result<Access, PieceError> {
        let mut state = self.state();
        match &*state {
            State::Open { file, .. } => return Ok(Access::Write(Arc::clone(file))),
            State::Kept => return Ok(Access::Kept { is_first: false }),
            State::Whole | State::Abandoned => return Err(PieceError::Withdrawn),
            State::Untouched => {}
        }
        if self.is_there()? {
            *state = State::Kept;
            return Ok(Access::Kept { is_first: true });
        }
        let file = Arc::new(NewFile::create(&self.path, heap)?);
        *state = State::Open {
            file: Arc::clone(&file),
            pieces_left: self.pieces(),
        };
        Ok(Access::Write(file))
    }

    /// Whether it was written completely before. A visibility map is always written again: a server that ran in between
    /// wrote one for the tuples of that time.
    fn is_there(&self) -> Result<bool, PieceError> {
        if self.fork == Fork::VisibilityMap {
            return Ok(false);
        }
        let is_first = self.blocks.start == 0;
        let empty_bytes = if is_first && self.fork == Fork::Index {
            PAGE_BYTES as u64
        } else {
            0
        };
        match fs::metadata(&self.path).map(|metadata| metadata.len()) {
            Ok(bytes) if bytes == self.bytes() => Ok(true),
            Ok(bytes) if bytes == empty_bytes => Ok(false),
            Ok(bytes) => Err(PieceError::Unsupported(format!(
                "{} has {bytes} bytes; allowed are {empty_bytes}, as of an empty one, and {}, as of one that is done",
                self.path.display(),
                self.bytes()
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_first => Ok(false),
            Err(error) => Err(PieceError::Io("look at", error)),
        }
    }

    /// Notes that a piece is written. The last one puts the file in place. Returns whether it did.
    pub(crate) fn piece_written(&self) -> Result<bool, PieceError> {
        let mut state = self.state();
        let State::Open { file, pieces_left } = &mut *state else {
            return Err(PieceError::Withdrawn);
        };
        *pieces_left -= 1;
        if *pieces_left > 0 {
            return Ok(false);
        }
        let file = Arc::clone(file);
        *state = State::Whole;
        drop(state);
        file.put_in_place()?;
        Ok(true)
    }

    /// Abandons a file that will not be finished. It is removed when no thread writes to it any more.
    pub(crate) fn abandon(&self) {
        let mut state = self.state();
        if matches!(*state, State::Untouched | State::Open { .. }) {
            *state = State::Abandoned;
        }
    }

    /// The rows in it, where they are those of `relation`'s heap.
    pub(crate) fn rows(&self, relation: &Planned) -> u64 {
        match self.fork {
            Fork::Heap => relation.rows_on(self.blocks.clone()),
            _ => 0,
        }
    }
}
