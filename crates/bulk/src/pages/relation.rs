//! The layout of a relation: the form of its rows, how many fit on a page, and the shape of its index.

use std::ops::Range;
use std::path::Path;

use plinth_config::ConfigError;

use crate::pages::btree::TreeLayout;
use crate::pages::checksum::set_checksum;
use crate::pages::chunks::{ChunkScratch, ChunkedLayout, ChunkedRows};
use crate::pages::config::{ColumnType, Relation};
use crate::pages::failure::PieceError;
use crate::pages::form::FormedRow;
use crate::pages::heap::{Ascent, HeapLayout, HeapRows, fill_map, map_blocks};
use crate::pages::index::{IndexRows, fill_metapage};
use crate::pages::page::Page;
use crate::pages::text::Fields;
use crate::pages::tuple::TupleShape;
use crate::table::Table;

/// `MaxBlockNumber`, and one.
const MOST_BLOCKS: u64 = u32::MAX as u64;

/// The kind of a file of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fork {
    Heap,
    VisibilityMap,
    Index,
}

/// A relation with at least one row.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) relation: Relation,
    /// Its number in the plan.
    number: usize,
    heap: Heap,
}

/// The form of the rows, and where they are.
#[derive(Debug)]
enum Heap {
    Even(EvenHeap),
    /// Rows of several widths.
    Chunked(ChunkedLayout),
}

/// Rows of one width, whose place is arithmetic, as is that of their keys.
#[derive(Debug)]
struct EvenHeap {
    layout: HeapLayout,
    shape: TupleShape,
    key: Option<Key>,
}

#[derive(Debug)]
struct Key {
    column: usize,
    bytes: usize,
    keys: Ascent,
    tree: TreeLayout,
}

/// Buffers that a thread reuses from page to page.
#[derive(Debug, Default)]
pub(crate) struct FillScratch {
    text: Vec<u8>,
    chunk: ChunkScratch,
}

impl Planned {
    /// Works out a relation from its first rows.
    pub(crate) fn new(
        number: usize,
        relation: Relation,
        table: &dyn Table,
    ) -> Result<Self, ConfigError> {
        let heap = if table.has_even_rows() {
            EvenHeap::new(&relation, table).map(Heap::Even)
        } else {
            chunked(&relation, table).map(Heap::Chunked)
        };
        let heap = heap.map_err(|message| {
            ConfigError::new("relations", format!("{}: {message}", relation.name))
        })?;
        let planned = Self {
            relation,
            number,
            heap,
        };
        match planned.problem() {
            Some(message) => Err(ConfigError::new("relations", message)),
            None => Ok(planned),
        }
    }

    /// The reason why it cannot be written, as far as its pages are known.
    pub(crate) fn problem(&self) -> Option<String> {
        let mut blocks = self.forks().map(|fork| self.blocks(fork));
        let blocks = blocks.find(|blocks| *blocks > MOST_BLOCKS)?;
        Some(format!(
            "{}: {blocks} pages, PostgreSQL allows {MOST_BLOCKS}; more partitions make smaller ones",
            self.relation.name
        ))
    }

    fn key(&self) -> Option<&Key> {
        match &self.heap {
            Heap::Even(even) => even.key.as_ref(),
            Heap::Chunked(_) => None,
        }
    }

    pub(crate) fn forks(&self) -> impl Iterator<Item = Fork> + use<> {
        let index = self.key().is_some().then_some(Fork::Index);
        [Fork::Heap, Fork::VisibilityMap].into_iter().chain(index)
    }

    /// The first file of a fork.
    pub(crate) fn path(&self, fork: Fork) -> std::path::PathBuf {
        let heap = &self.relation.heap;
        match (fork, &self.relation.index) {
            (Fork::Index, Some(index)) => index.path.clone(),
            (Fork::VisibilityMap, _) => with_suffix(heap, "_vm"),
            _ => heap.clone(),
        }
    }

    fn heap_blocks(&self) -> u64 {
        match &self.heap {
            Heap::Even(even) => even.layout.blocks(),
            Heap::Chunked(chunks) => chunks.blocks(),
        }
    }

    /// The number of pages of a fork.
    pub(crate) fn blocks(&self, fork: Fork) -> u64 {
        match (fork, self.key()) {
            (Fork::Index, Some(key)) => key.tree.blocks(),
            (Fork::VisibilityMap, _) => map_blocks(self.heap_blocks()),
            _ => self.heap_blocks(),
        }
    }

    /// How many rows are on pages of the heap; of rows of several widths, in the chunks that begin there.
    pub(crate) fn rows_on(&self, blocks: Range<u64>) -> u64 {
        match &self.heap {
            Heap::Even(even) => {
                let rows = even.layout.rows_on(blocks);
                rows.end - rows.start
            }
            Heap::Chunked(chunks) => chunks.rows_on(blocks),
        }
    }

    /// The number of chunks whose pages have to be counted before any is written.
    pub(crate) fn chunks(&self) -> u64 {
        match &self.heap {
            Heap::Even(_) => 0,
            Heap::Chunked(chunks) => chunks.chunks(),
        }
    }

    /// Counts the pages of a chunk. Returns the number of its rows.
    pub(crate) fn count(
        &self,
        chunk: u64,
        table: &dyn Table,
        scratch: &mut FillScratch,
    ) -> Result<u64, PieceError> {
        match &self.heap {
            Heap::Even(_) => Ok(0),
            Heap::Chunked(chunks) => self
                .chunked_rows(chunks, table)
                .count(chunk, &mut scratch.chunk),
        }
    }

    /// Works out the places of all pages, once all chunks are counted.
    pub(crate) fn place_chunks(&self) {
        if let Heap::Chunked(chunks) = &self.heap {
            chunks.place_chunks();
        }
    }

    /// Fills a page. The index' first one comes as it is in the file that is there.
    pub(crate) fn fill(
        &self,
        fork: Fork,
        block: u64,
        table: &dyn Table,
        page: &mut Page,
        scratch: &mut FillScratch,
    ) -> Result<(), PieceError> {
        match (fork, &self.heap) {
            (Fork::VisibilityMap, _) => {
                fill_map(self.heap_blocks(), block, page);
                Ok(())
            }
            (Fork::Index, Heap::Even(even)) => even.fill_index(block, page),
            (_, Heap::Even(even)) => {
                let rows = even.rows(self.relation.first_row, table);
                rows.fill(block, page, &mut scratch.text)
            }
            (_, Heap::Chunked(chunks)) => {
                self.chunked_rows(chunks, table)
                    .fill(self.number, block, page, &mut scratch.chunk)
            }
        }
    }

    fn chunked_rows<'a>(
        &'a self,
        layout: &'a ChunkedLayout,
        table: &'a dyn Table,
    ) -> ChunkedRows<'a> {
        ChunkedRows {
            layout,
            columns: &self.relation.columns,
            fillfactor: self.relation.fillfactor,
            table,
            first_row: self.relation.first_row,
        }
    }
}

impl EvenHeap {
    /// Works out form and places from the first two rows.
    fn new(relation: &Relation, table: &dyn Table) -> Result<Self, String> {
        let row = |number| row_of(relation, table, number);
        let shape = TupleShape::of(&relation.columns, &row(0))?;
        let mut key = None;
        if let Some(index) = &relation.index {
            key = Some(Key {
                column: index.column,
                bytes: key_bytes(relation.columns[index.column].kind),
                keys: ascent(&shape, index.column, row, relation.rows)?,
                tree: TreeLayout::new(relation.rows, index.fillfactor),
            });
        }
        Ok(Self {
            layout: HeapLayout::new(relation.rows, &shape, relation.fillfactor),
            shape,
            key,
        })
    }

    fn rows<'a>(&'a self, first_row: u64, table: &'a dyn Table) -> HeapRows<'a> {
        HeapRows {
            layout: self.layout,
            shape: &self.shape,
            table,
            first_row,
            key: self.key.as_ref().map(|key| (key.column, key.keys)),
        }
    }

    fn fill_index(&self, block: u64, page: &mut Page) -> Result<(), PieceError> {
        let Some(key) = &self.key else {
            return Ok(()); // without a key there is no file of it
        };
        if block == 0 {
            return fill_metapage(&key.tree, page);
        }
        let rows = IndexRows {
            tree: &key.tree,
            heap: self.layout,
            keys: key.keys,
            key_bytes: key.bytes,
        };
        rows.fill(block, page);
        Ok(())
    }
}

/// A row of a relation as text.
fn row_of(relation: &Relation, table: &dyn Table, number: u64) -> Vec<u8> {
    let mut text = Vec::new();
    let first = relation.first_row + number;
    table.write_rows(first..first + 1, &mut text);
    text
}

/// Chunks whose size is chosen by the first row. Their key cannot be written: it would need the place of each row.
fn chunked(relation: &Relation, table: &dyn Table) -> Result<ChunkedLayout, String> {
    if relation.index.is_some() {
        return Err(
            "its rows differ in width, and pages of a key are written for rows of one width: build it once the rows are there"
                .to_owned(),
        );
    }
    let mut first = FormedRow::default();
    let text = row_of(relation, table, 0);
    first.read(&relation.columns, &mut Fields::new(&text))?;
    Ok(ChunkedLayout::new(
        relation.rows,
        first.width(),
        relation.fillfactor,
    ))
}

/// Gives a page its checksum, as the cluster wants it.
pub(crate) fn seal(page: &mut Page, block: u64, checksums: bool) {
    if checksums {
        set_checksum(page, block as u32);
    }
}

/// A path with something behind it that is no extension.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn key_bytes(kind: ColumnType) -> usize {
    match kind {
        ColumnType::Int2 => 2,
        ColumnType::Int4 => 4,
        _ => 8,
    }
}

/// The keys that the first two rows promise; that the others keep to it is seen when they are written.
fn ascent(
    shape: &TupleShape,
    column: usize,
    row: impl Fn(u64) -> Vec<u8>,
    rows: u64,
) -> Result<Ascent, String> {
    if shape.is_null(column) {
        return Err(format!("column {column}: a key cannot be null"));
    }
    let key = |number: u64| {
        let text = row(number);
        let mut tuple = vec![0; shape.aligned()];
        shape.fill(&mut Fields::new(&text), &mut tuple, 0, 1)?;
        Ok::<_, String>(shape.integer(&tuple, column))
    };
    let first = key(0)?;
    let second = if rows > 1 {
        key(1)?
    } else {
        first.saturating_add(1)
    };
    match second.checked_sub(first) {
        Some(step) if step > 0 || rows == 1 => Ok(Ascent { first, step }),
        _ => Err(format!(
            "column {column}: keys have to ascend evenly, and {second} follows {first}"
        )),
    }
}
