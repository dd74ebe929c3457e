//! Computes the content and position of the pages of a B-tree as nbtsort.c builds it from sorted keys.
//!
//! nbtsort adds entries to a leaf until it is full; the last one then becomes the leaf's high key and the first entry of
//! the next leaf, and the finished leaf is entered in the level above, where the same happens. A page gets its number
//! when it is begun. All entries are equally wide, so that all this is arithmetic.

use crate::pages::page::{HEADER_BYTES, LINE_POINTER_BYTES, PAGE_BYTES, free_bytes};

/// `sizeof(BTPageOpaqueData)`.
pub(crate) const OPAQUE_BYTES: usize = 16;
/// Of a leaf's entries and high key, and of the others but the first of each inner page: 8 bytes and an integer, aligned.
pub(crate) const ENTRY_BYTES: usize = 16;
/// The size of the first entry of an inner page, which is less than any key.
pub(crate) const LEAST_ENTRY_BYTES: usize = 8;
/// The space reserved for a heap TID in a leaf's high key.
const TID_BYTES: usize = 8;
/// `BTREE_NONLEAF_FILLFACTOR`.
const INNER_FILLFACTOR: usize = 70;
const METAPAGE: u64 = 0;

/// A page of a B-tree: its level, leaves being 0, and its number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) level: usize,
    pub(crate) number: u64,
}

/// The levels of a B-tree of at least one entry.
#[derive(Debug)]
pub(crate) struct TreeLayout {
    levels: Vec<Level>,
    /// Levels whose last page is begun only when all leaves are there and the levels are closed, one after the other.
    late: Vec<usize>,
    blocks: u64,
}

/// A level: how many entries and pages, and entries on each page but the last.
#[derive(Debug, Clone, Copy)]
struct Level {
    entries: u64,
    pages: u64,
    per_page: u64,
}

impl Level {
    fn new(entries: u64, per_page: u64) -> Self {
        Self {
            entries,
            pages: pages(entries, per_page),
            per_page,
        }
    }
}

/// Page k > 0 is begun when entry `per_page * k + 1` does not fit on the one before.
fn pages(entries: u64, per_page: u64) -> u64 {
    match entries {
        0 => 0,
        entries => 1 + entries.saturating_sub(2) / per_page,
    }
}

/// How many entries a page keeps: nbtsort begins the next when what it would add leaves less than the fill factor does,
/// or does not fit; but not before there are two (`_bt_buildadd`).
fn per_page(first_bytes: usize, fillfactor: usize, reserve: usize) -> u64 {
    // With the line pointer of the high key.
    let whole = PAGE_BYTES - HEADER_BYTES - OPAQUE_BYTES - LINE_POINTER_BYTES;
    let taken =
        |entries: usize| first_bytes + (entries - 1) * ENTRY_BYTES + entries * LINE_POINTER_BYTES;
    // `PageGetFreeSpace` leaves room for the line pointer of what is added.
    let room = |entries: usize| whole.saturating_sub(taken(entries) + LINE_POINTER_BYTES);
    let mut entries = 2;
    while room(entries) >= ENTRY_BYTES + reserve && room(entries) >= free_bytes(fillfactor) {
        entries += 1;
    }
    entries as u64 - 1 // the last one moves on
}

impl TreeLayout {
    pub(crate) fn new(entries: u64, fillfactor: usize) -> Self {
        let per_leaf = per_page(ENTRY_BYTES, fillfactor, TID_BYTES);
        let per_inner_page = per_page(LEAST_ENTRY_BYTES, INNER_FILLFACTOR, 0);
        Self::build(entries, per_leaf, per_inner_page)
    }

    fn build(entries: u64, per_leaf: u64, per_inner_page: u64) -> Self {
        let mut levels = vec![Level::new(entries, per_leaf)];
        while let Some(level) = levels.last().filter(|level| level.pages > 1) {
            levels.push(Level::new(level.pages, per_inner_page));
        }
        let blocks = METAPAGE + 1 + levels.iter().map(|level| level.pages).sum::<u64>();
        let mut tree = Self {
            levels,
            late: Vec::new(),
            blocks,
        };
        let begun = tree.begun(tree.levels[0].pages);
        tree.late = (0..tree.levels.len())
            .filter(|level| tree.levels[*level].pages > begun[*level])
            .collect();
        tree
    }

    /// With the metapage.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    pub(crate) fn root(&self) -> Place {
        Place {
            level: self.levels.len() - 1,
            number: 0,
        }
    }

    pub(crate) fn is_last(&self, place: Place) -> bool {
        place.number + 1 == self.levels[place.level].pages
    }

    /// The entries of a page. Of an inner page they are pages of the level below, by number; its high key is the one that
    /// follows.
    pub(crate) fn entries(&self, place: Place) -> std::ops::Range<u64> {
        let level = self.levels[place.level];
        let first = place.number * level.per_page;
        let end = if self.is_last(place) {
            level.entries
        } else {
            first + level.per_page
        };
        first..end
    }

    /// The first row below a page.
    pub(crate) fn first_row(&self, place: Place) -> u64 {
        let below = &self.levels[..=place.level];
        place.number * below.iter().map(|level| level.per_page).product::<u64>()
    }

    /// How many pages of each level have been begun when so many leaves have, the last of which is not finished.
    fn begun(&self, leaves: u64) -> Vec<u64> {
        let mut begun = vec![leaves];
        for level in &self.levels[1..] {
            let below = begun[begun.len() - 1];
            begun.push(pages(below.saturating_sub(1), level.per_page));
        }
        begun
    }

    fn leaf_block(&self, leaf: u64) -> u64 {
        METAPAGE + 1 + self.begun(leaf).iter().sum::<u64>()
    }

    /// The first block of those that are begun when levels are closed.
    fn first_late_block(&self) -> u64 {
        self.blocks - self.late.len() as u64
    }

    /// The position of a page in the file.
    pub(crate) fn block(&self, place: Place) -> u64 {
        let Place { level, number } = place;
        if level == 0 {
            return self.leaf_block(number);
        }
        // An inner page is begun together with the page below that finishes the entry that it is begun for.
        let below = match number {
            0 => 1,
            number => number * self.levels[level].per_page + 2,
        };
        if below < self.levels[level - 1].pages {
            let below = Place {
                level: level - 1,
                number: below,
            };
            return self.block(below) + 1;
        }
        let earlier = self.late.iter().take_while(|late| **late < level).count();
        self.first_late_block() + earlier as u64
    }

    /// The page that is at a block, which is not the metapage's.
    pub(crate) fn at(&self, block: u64) -> Place {
        if block >= self.first_late_block() {
            let level = self.late[(block - self.first_late_block()) as usize];
            let number = self.levels[level].pages - 1;
            return Place { level, number };
        }
        let leaf = self.last_leaf_before(block);
        let level = (block - self.leaf_block(leaf)) as usize;
        let number = self.begun(leaf + 1)[level] - 1;
        Place { level, number }
    }

    /// The last leaf at or before a block.
    fn last_leaf_before(&self, block: u64) -> u64 {
        let (mut leaf, mut behind) = (0, self.levels[0].pages);
        while behind - leaf > 1 {
            let middle = leaf + (behind - leaf) / 2;
            if self.leaf_block(middle) <= block {
                leaf = middle;
            } else {
                behind = middle;
            }
        }
        leaf
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// nbtsort, entry by entry: the pages in the order in which they are begun, each with its entries.
    #[derive(Default)]
    struct Sort {
        begun: Vec<(Place, Vec<u64>)>,
        open: Vec<usize>,
        per_page: Vec<u64>,
    }

    impl Sort {
        fn add(&mut self, level: usize, entry: u64) {
            if level == self.open.len() {
                self.begin(level, 0);
            }
            let open = self.open[level];
            let (place, entries) = &mut self.begun[open];
            if entries.len() as u64 == self.per_page[level.min(1)] + 1 {
                let (finished, moved) = (place.number, entries.pop().unwrap());
                self.begin(level, finished + 1);
                self.begun[self.open[level]].1.push(moved);
                self.add(level + 1, finished);
            }
            self.begun[self.open[level]].1.push(entry);
        }

        fn begin(&mut self, level: usize, number: u64) {
            self.open.truncate(self.open.len().max(level));
            if level == self.open.len() {
                self.open.push(0);
            }
            self.open[level] = self.begun.len();
            self.begun.push((Place { level, number }, Vec::new()));
        }

        fn close(&mut self) {
            let mut level = 0;
            while level + 1 < self.open.len() {
                let number = self.begun[self.open[level]].0.number;
                self.add(level + 1, number);
                level += 1;
            }
        }
    }

    #[test]
    fn pages_hold_what_nbtsort_gives_them() {
        // 8192 bytes of 16 and 4 each, as PostgreSQL's own tables have them.
        assert_eq!(per_page(ENTRY_BYTES, 90, TID_BYTES), 366);
        assert_eq!(per_page(ENTRY_BYTES, 100, TID_BYTES), 406);
        assert_eq!(per_page(LEAST_ENTRY_BYTES, INNER_FILLFACTOR, 0), 284);
    }

    /// All trees up to three inner levels, made small.
    #[test]
    fn every_page_is_where_nbtsort_puts_it() {
        for (leaf, inner) in [(2, 3), (3, 3), (5, 4)] {
            for rows in 1..=250 {
                let tree = TreeLayout::build(rows, leaf, inner);
                let mut sort = Sort {
                    per_page: vec![leaf, inner],
                    ..Sort::default()
                };
                (0..rows).for_each(|row| sort.add(0, row));
                sort.close();
                assert_eq!(tree.blocks, 1 + sort.begun.len() as u64, "{rows}");
                for (number, (place, entries)) in sort.begun.iter().enumerate() {
                    let block = 1 + number as u64;
                    assert_eq!(tree.at(block), *place, "{rows} rows, block {block}");
                    assert_eq!(tree.block(*place), block, "{rows} rows, {place:?}");
                    assert!(
                        tree.entries(*place).eq(entries.iter().copied()),
                        "{rows} rows, {place:?}"
                    );
                }
            }
        }
    }
}
