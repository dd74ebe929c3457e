//! Pages of a B-tree, as PostgreSQL's `nbtree.h` lays them out and `nbtsort.c` writes them.

use crate::pages::btree::{ENTRY_BYTES, LEAST_ENTRY_BYTES, OPAQUE_BYTES, Place, TreeLayout};
use crate::pages::failure::PieceError;
use crate::pages::heap::{Ascent, HeapLayout};
use crate::pages::page::{
    HEADER_BYTES, LINE_POINTER_BYTES, PAGE_BYTES, Page, begin, get_u32, is_page, point,
    put_item_pointer, put_u16, put_u32, set_bounds,
};

/// The position of the special space, `BTPageOpaqueData`: previous and next page, level, flags, vacuum cycle.
const OPAQUE_AT: usize = PAGE_BYTES - OPAQUE_BYTES;
const LEAF: u16 = 1;
const ROOT: u16 = 2;
/// The layout of an `IndexTuple`: item pointer, then size and flags, then the key.
const SIZE_AT: usize = 6;
const KEY_AT: usize = 8;
/// `INDEX_ALT_TID_MASK`: a pivot, whose item pointer holds a page below and a count of columns.
const PIVOT: u16 = 0x2000;
/// `BTMetaPageData`: magic, version, root, level, fastroot, fastlevel.
const META_AT: usize = HEADER_BYTES;
const MAGIC: u32 = 0x05_3162;
/// `BTREE_VERSION`, since PostgreSQL 12.
const VERSION: u32 = 4;

/// The key of a relation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexRows<'a> {
    pub(crate) tree: &'a TreeLayout,
    pub(crate) heap: HeapLayout,
    pub(crate) keys: Ascent,
    /// The width of the column: 2, 4 or 8 bytes.
    pub(crate) key_bytes: usize,
}

/// The role of an entry in its page.
#[derive(Debug, Clone, Copy)]
enum Entry {
    /// A row and its place in the heap.
    Row(u64),
    /// A leaf's high key: the first row of the next leaf.
    Bound(u64),
    /// A page of the level below.
    Child(Place),
    /// The first of an inner page, which is less than any key.
    Least(Place),
}

/// Completes the metapage of an index without entries, which is what `page` holds. It keeps what else is in it: the version,
/// and whether equal keys have equal images.
pub(crate) fn fill_metapage(tree: &TreeLayout, page: &mut Page) -> Result<(), PieceError> {
    let field = |number: usize| META_AT + number * 4;
    let (magic, version, root) = (
        get_u32(page, field(0)),
        get_u32(page, field(1)),
        get_u32(page, field(2)),
    );
    if !is_page(page) || magic != MAGIC || version != VERSION {
        return Err(PieceError::Unsupported(format!(
            "the index is no B-tree of version {VERSION}: its magic number is {magic:#x}, its version {version}"
        )));
    }
    if root != 0 {
        return Err(PieceError::Unsupported(format!(
            "the index is not empty: its root is page {root}"
        )));
    }
    let root = tree.root();
    for number in [2, 4] {
        put_u32(page, field(number), tree.block(root) as u32);
        put_u32(page, field(number + 1), root.level as u32);
    }
    Ok(())
}

impl IndexRows<'_> {
    /// Writes a page that is not the metapage.
    pub(crate) fn fill(&self, block: u64, page: &mut Page) {
        begin(page, 0, OPAQUE_BYTES);
        let place = self.tree.at(block);
        self.fill_opaque(place, page);
        let is_last = self.tree.is_last(place);
        let entries = self.tree.entries(place);
        // Line pointer 1 is the high key's, which the last page of a level has none of.
        let (mut number, mut upper) = (usize::from(!is_last), OPAQUE_AT);
        for entry in entries.clone() {
            number += 1;
            upper = self.put(
                self.entry(place, entry, entry == entries.start),
                number,
                upper,
                page,
            );
        }
        if !is_last {
            let high = match place.level {
                0 => Entry::Bound(entries.end),
                _ => self.entry(place, entries.end, false),
            };
            upper = self.put(high, 1, upper, page);
        }
        set_bounds(page, HEADER_BYTES + number * LINE_POINTER_BYTES, upper);
    }

    fn fill_opaque(&self, place: Place, page: &mut Page) {
        let block = |number| {
            let Place { level, .. } = place;
            self.tree.block(Place { level, number }) as u32
        };
        if place.number > 0 {
            put_u32(page, OPAQUE_AT, block(place.number - 1));
        }
        if !self.tree.is_last(place) {
            put_u32(page, OPAQUE_AT + 4, block(place.number + 1));
        }
        put_u32(page, OPAQUE_AT + 8, place.level as u32);
        let leaf = if place.level == 0 { LEAF } else { 0 };
        let root = if place == self.tree.root() { ROOT } else { 0 };
        put_u16(page, OPAQUE_AT + 12, leaf | root);
    }

    #[inline]
    fn entry(&self, place: Place, number: u64, is_first: bool) -> Entry {
        if place.level == 0 {
            return Entry::Row(number);
        }
        let child = Place {
            level: place.level - 1,
            number,
        };
        if is_first {
            Entry::Least(child)
        } else {
            Entry::Child(child)
        }
    }

    /// Writes an entry in front of `upper`; where it begins.
    #[inline]
    fn put(&self, entry: Entry, number: usize, upper: usize, page: &mut Page) -> usize {
        let (bytes, flags, row) = match entry {
            Entry::Row(row) => (ENTRY_BYTES, 0, Some(row)),
            Entry::Bound(row) => (ENTRY_BYTES, PIVOT, Some(row)),
            Entry::Child(child) => (ENTRY_BYTES, PIVOT, Some(self.tree.first_row(child))),
            Entry::Least(_) => (LEAST_ENTRY_BYTES, PIVOT, None),
        };
        let at = upper - bytes;
        let (block, offset) = match entry {
            Entry::Row(row) => self.heap.place(row),
            // The pointer of the row that it was made of, its number overwritten with the count of columns.
            Entry::Bound(row) => (self.heap.place(row).0, 1),
            Entry::Child(child) => (self.tree.block(child) as u32, 1),
            Entry::Least(child) => (self.tree.block(child) as u32, 0),
        };
        put_item_pointer(page, at, block, offset);
        put_u16(page, at + SIZE_AT, bytes as u16 | flags);
        if let Some(row) = row {
            let key = self.keys.key(row).to_le_bytes();
            page[at + KEY_AT..at + KEY_AT + self.key_bytes].copy_from_slice(&key[..self.key_bytes]);
        }
        point(page, number, at, bytes);
        at
    }
}
