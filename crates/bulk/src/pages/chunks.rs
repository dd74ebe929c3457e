//! The heap of a table whose rows differ in width: chunks of rows, each of which begins on a page of its own.
//!
//! How many pages a chunk takes is known once its rows have been made. So all chunks are counted first, and from then on any page
//! can be written without those before its chunk. Within a chunk, pages are as full as `heap_multi_insert` makes them.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::pages::config::PageColumn;
use crate::pages::failure::PieceError;
use crate::pages::form::FormedRow;
use crate::pages::heap::MOST_PER_PAGE;
use crate::pages::page::{
    ALL_VISIBLE, HEADER_BYTES, LINE_POINTER_BYTES, PAGE_BYTES, Page, begin, free_bytes, max_align,
    point, set_bounds,
};
use crate::pages::text::Fields;
use crate::table::Table;

/// Pages of a chunk, about: a quarter of a MiB. A chunk leaves half of its last page free on average, and two threads make the
/// one that lies across the border of their pieces.
const CHUNK_PAGES: u64 = 32;

/// The chunks of a relation.
#[derive(Debug)]
pub(crate) struct ChunkedLayout {
    rows: u64,
    chunk_rows: u64,
    /// The pages of each chunk that was counted.
    pages: Vec<AtomicU32>,
    /// The first page of each chunk, and at the end the number of pages. Known once all chunks are counted.
    firsts: OnceLock<Vec<u64>>,
}

/// The rows of a relation, and what they are made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkedRows<'a> {
    pub(crate) layout: &'a ChunkedLayout,
    pub(crate) columns: &'a [PageColumn],
    pub(crate) fillfactor: usize,
    pub(crate) table: &'a dyn Table,
    /// The table's row that is the relation's first.
    pub(crate) first_row: u64,
}

/// Buffers that a thread reuses from chunk to chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkScratch {
    text: Vec<u8>,
    row: FormedRow,
    pages: Vec<u8>,
    /// The relation, by its number, and the chunk whose pages these are.
    made: Option<(usize, u64)>,
}

/// Where a row goes: a page of the chunk, its line pointer, of which 1 is the first, and its first byte.
#[derive(Debug, Clone, Copy)]
struct Spot {
    page: u32,
    number: usize,
    at: usize,
}

impl Spot {
    const FIRST: Self = Self::on(0);

    const fn on(page: u32) -> Self {
        Self {
            page,
            number: 0,
            at: PAGE_BYTES,
        }
    }

    /// The place behind this one for a row of so many bytes, on the next page if this one is full: a page takes a row as long
    /// as `reserve` is left free, and one at least.
    fn next(self, bytes: usize, reserve: usize) -> Self {
        let lower = HEADER_BYTES + (self.number + 1) * LINE_POINTER_BYTES;
        let has_room = self.number < MOST_PER_PAGE && self.at >= lower + bytes + reserve;
        let page = if self.number == 0 || has_room {
            self
        } else {
            Self::on(self.page + 1)
        };
        Self {
            page: page.page,
            number: page.number + 1,
            at: page.at - bytes,
        }
    }
}

impl ChunkedLayout {
    /// Chunks of rows, of which the first one takes `first_bytes`.
    pub(crate) fn new(rows: u64, first_bytes: usize, fillfactor: usize) -> Self {
        let room = PAGE_BYTES - free_bytes(fillfactor);
        let per_page = (room / (max_align(first_bytes) + LINE_POINTER_BYTES)).max(1);
        let chunk_rows = CHUNK_PAGES * per_page as u64;
        let chunks = rows.div_ceil(chunk_rows) as usize;
        Self {
            rows,
            chunk_rows,
            pages: std::iter::repeat_with(AtomicU32::default)
                .take(chunks)
                .collect(),
            firsts: OnceLock::new(),
        }
    }

    /// The number of chunks.
    pub(crate) fn chunks(&self) -> u64 {
        self.pages.len() as u64
    }

    /// The rows of a chunk.
    fn rows_of(&self, chunk: u64) -> Range<u64> {
        let row = |chunk: u64| self.rows.min(chunk * self.chunk_rows);
        row(chunk)..row(chunk + 1)
    }

    /// Ends the counting: from now on the place of each chunk is known.
    pub(crate) fn place_chunks(&self) {
        self.firsts.get_or_init(|| {
            let mut firsts = Vec::with_capacity(self.pages.len() + 1);
            let mut sum = 0;
            for pages in &self.pages {
                firsts.push(sum);
                sum += u64::from(pages.load(Relaxed));
            }
            firsts.push(sum);
            firsts
        });
    }

    /// No pages before they are counted.
    fn firsts(&self) -> &[u64] {
        self.firsts.get().map_or(&[0], Vec::as_slice)
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.firsts().last().copied().unwrap_or_default()
    }

    /// The chunk that a page is in.
    pub(crate) fn chunk_of(&self, block: u64) -> u64 {
        self.firsts().partition_point(|&first| first <= block) as u64 - 1
    }

    fn first_block(&self, chunk: u64) -> u64 {
        self.firsts()[chunk as usize]
    }

    /// How many rows are in the chunks that begin on these pages.
    pub(crate) fn rows_on(&self, blocks: Range<u64>) -> u64 {
        let firsts = &self.firsts()[..self.pages.len()];
        let rows = |end: u64| {
            let chunks = firsts.partition_point(|&first| first < end) as u64;
            self.rows.min(chunks * self.chunk_rows)
        };
        rows(blocks.end) - rows(blocks.start)
    }
}

impl ChunkedRows<'_> {
    /// Counts the pages of a chunk. Returns the number of its rows.
    pub(crate) fn count(&self, chunk: u64, scratch: &mut ChunkScratch) -> Result<u64, PieceError> {
        let pages = self.each_row(chunk, &mut scratch.text, &mut scratch.row, |_, _| ())?;
        self.layout.pages[chunk as usize].store(pages, Relaxed);
        let rows = self.layout.rows_of(chunk);
        Ok(rows.end - rows.start)
    }

    /// Writes a page of the heap, and for that makes its chunk, unless `scratch` has it already. `relation`: its number.
    pub(crate) fn fill(
        &self,
        relation: usize,
        block: u64,
        page: &mut Page,
        scratch: &mut ChunkScratch,
    ) -> Result<(), PieceError> {
        let chunk = self.layout.chunk_of(block);
        if scratch.made != Some((relation, chunk)) {
            scratch.made = None;
            self.make(chunk, scratch)?;
            scratch.made = Some((relation, chunk));
        }
        let at = (block - self.layout.first_block(chunk)) as usize;
        page.copy_from_slice(&scratch.pages[at * PAGE_BYTES..(at + 1) * PAGE_BYTES]);
        Ok(())
    }

    /// Fills the pages of a chunk.
    fn make(&self, chunk: u64, scratch: &mut ChunkScratch) -> Result<(), PieceError> {
        let ChunkScratch {
            text, row, pages, ..
        } = scratch;
        let first_block = self.layout.first_block(chunk) as u32;
        let blocks = self.layout.pages[chunk as usize].load(Relaxed);
        pages.resize(blocks as usize * PAGE_BYTES, 0);
        let (pages, _) = pages.as_chunks_mut::<PAGE_BYTES>();
        let made = self.each_row(chunk, text, row, |spot, row| {
            let Some(page) = pages.get_mut(spot.page as usize) else {
                return;
            };
            if spot.number == 1 {
                begin(page, ALL_VISIBLE, 0);
            }
            let bytes = row.width();
            row.write(
                &mut page[spot.at..spot.at + bytes],
                first_block + spot.page,
                spot.number as u16,
            );
            point(page, spot.number, spot.at, bytes);
            set_bounds(
                page,
                HEADER_BYTES + spot.number * LINE_POINTER_BYTES,
                spot.at,
            );
        })?;
        if made == blocks {
            return Ok(());
        }
        Err(PieceError::Unsupported(format!(
            "rows from {} on: {made} pages, and {blocks} when they were counted",
            self.first_row + self.layout.rows_of(chunk).start
        )))
    }

    /// Calls `put` for each row of a chunk. Returns the number of its pages.
    fn each_row(
        &self,
        chunk: u64,
        text: &mut Vec<u8>,
        row: &mut FormedRow,
        mut put: impl FnMut(Spot, &FormedRow),
    ) -> Result<u32, PieceError> {
        let rows = self.layout.rows_of(chunk);
        text.clear();
        self.table
            .write_rows(self.first_row + rows.start..self.first_row + rows.end, text);
        let mut fields = Fields::new(text);
        let reserve = free_bytes(self.fillfactor);
        let mut spot = Spot::FIRST;
        for number in rows.clone() {
            row.read(self.columns, &mut fields).map_err(|problem| {
                PieceError::Unsupported(format!("row {}: {problem}", self.first_row + number))
            })?;
            spot = spot.next(max_align(row.width()), reserve);
            put(spot, row);
        }
        if !fields.is_empty() {
            return Err(PieceError::Unsupported(format!(
                "rows from {} on: more columns or rows than were asked for",
                self.first_row + rows.start
            )));
        }
        Ok(spot.page + 1)
    }
}
