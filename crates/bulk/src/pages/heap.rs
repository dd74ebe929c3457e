//! Heap pages as `heap_multi_insert` fills them for COPY FREEZE, and the visibility map of them.

use std::ops::Range;

use crate::pages::failure::PieceError;
use crate::pages::page::{
    ALL_VISIBLE, HEADER_BYTES, LINE_POINTER_BYTES, PAGE_BYTES, Page, begin, free_bytes, point,
    set_bounds,
};
use crate::pages::text::Fields;
use crate::pages::tuple::TupleShape;
use crate::table::Table;

/// `MaxHeapTuplesPerPage`.
pub(crate) const MOST_PER_PAGE: usize = 291;
/// `HEAPBLOCKS_PER_PAGE` of visibilitymap.c: two bits each, all-visible and all-frozen.
const BLOCKS_PER_MAP_PAGE: u64 = 4 * (PAGE_BYTES - HEADER_BYTES) as u64;

/// The position of rows of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeapLayout {
    /// The number of rows.
    pub(crate) rows: u64,
    /// The number of rows on each page but the last.
    pub(crate) per_page: u64,
}

/// Keys that ascend evenly: row r has `first + step * r`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ascent {
    pub(crate) first: i64,
    pub(crate) step: i64,
}

impl Ascent {
    #[inline]
    pub(crate) fn key(self, row: u64) -> i64 {
        self.first.wrapping_add(self.step.wrapping_mul(row as i64))
    }
}

impl HeapLayout {
    /// A page takes a row as long as room for `fillfactor` is left behind it; the first one always.
    pub(crate) fn new(rows: u64, shape: &TupleShape, fillfactor: usize) -> Self {
        let room =
            PAGE_BYTES - HEADER_BYTES - free_bytes(fillfactor).min(PAGE_BYTES - HEADER_BYTES);
        let per_page = (room / (shape.aligned() + LINE_POINTER_BYTES)).clamp(1, MOST_PER_PAGE);
        Self {
            rows,
            per_page: per_page as u64,
        }
    }

    pub(crate) fn blocks(self) -> u64 {
        self.rows.div_ceil(self.per_page)
    }

    /// The rows on pages, numbered from the relation's first.
    pub(crate) fn rows_on(self, blocks: Range<u64>) -> Range<u64> {
        let row = |block: u64| self.rows.min(block * self.per_page);
        row(blocks.start)..row(blocks.end)
    }

    /// The position of a row: its page, and the number of its line pointer.
    #[inline]
    pub(crate) fn place(self, row: u64) -> (u32, u16) {
        (
            (row / self.per_page) as u32,
            (row % self.per_page) as u16 + 1,
        )
    }
}

/// The number of pages of the visibility map of a heap of so many pages.
pub(crate) fn map_blocks(heap_blocks: u64) -> u64 {
    heap_blocks.div_ceil(BLOCKS_PER_MAP_PAGE)
}

/// Writes a page of the visibility map: every page of the heap is all-visible and all-frozen.
pub(crate) fn fill_map(heap_blocks: u64, block: u64, page: &mut Page) {
    begin(page, 0, 0);
    let first = block * BLOCKS_PER_MAP_PAGE;
    let marked = (heap_blocks - first).min(BLOCKS_PER_MAP_PAGE) as usize;
    let bits = &mut page[HEADER_BYTES..];
    bits[..marked / 4].fill(0xFF);
    if !marked.is_multiple_of(4) {
        bits[marked / 4] = (1 << (2 * (marked % 4))) - 1;
    }
}

/// The content of the heap of a relation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeapRows<'a> {
    pub(crate) layout: HeapLayout,
    pub(crate) shape: &'a TupleShape,
    pub(crate) table: &'a dyn Table,
    /// The table's row that is the relation's first.
    pub(crate) first_row: u64,
    /// The key's column, and what its values have to be.
    pub(crate) key: Option<(usize, Ascent)>,
}

impl HeapRows<'_> {
    /// Writes a page of the heap. `text` is scratch space.
    pub(crate) fn fill(
        &self,
        block: u64,
        page: &mut Page,
        text: &mut Vec<u8>,
    ) -> Result<(), PieceError> {
        begin(page, ALL_VISIBLE, 0);
        let rows = self.layout.rows_on(block..block + 1);
        text.clear();
        self.table
            .write_rows(self.first_row + rows.start..self.first_row + rows.end, text);
        let mut fields = Fields::new(text);
        let (mut upper, mut number) = (PAGE_BYTES, 0);
        for row in rows {
            number += 1;
            upper -= self.shape.aligned();
            let slot = &mut page[upper..upper + self.shape.aligned()];
            let filled = self
                .shape
                .fill(&mut fields, slot, block as u32, number as u16);
            filled
                .and_then(|()| self.check_key(row, slot))
                .map_err(|problem| {
                    PieceError::Unsupported(format!("row {}: {problem}", self.first_row + row))
                })?;
            point(page, number, upper, self.shape.width());
        }
        if !fields.is_empty() {
            let message = format!("page {block}: more columns or rows than were asked for");
            return Err(PieceError::Unsupported(message));
        }
        set_bounds(page, HEADER_BYTES + number * LINE_POINTER_BYTES, upper);
        Ok(())
    }

    #[inline]
    fn check_key(&self, row: u64, tuple: &[u8]) -> Result<(), String> {
        let Some((column, ascent)) = self.key else {
            return Ok(());
        };
        let (got, wanted) = (self.shape.integer(tuple, column), ascent.key(row));
        if got == wanted {
            return Ok(());
        }
        Err(format!(
            "its key is {got} and not {wanted}; keys have to ascend evenly"
        ))
    }
}
