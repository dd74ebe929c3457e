//! The layout of a relation: the form of its rows, how many fit on a page, and the shape of its index.

use std::path::Path;

use plinth_config::ConfigError;

use crate::pages::btree::TreeLayout;
use crate::pages::checksum::set_checksum;
use crate::pages::config::{ColumnType, Relation};
use crate::pages::failure::PieceError;
use crate::pages::heap::{Ascent, HeapLayout, HeapRows};
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
    pub(crate) heap: HeapLayout,
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

impl Planned {
    /// Works out a relation from its first two rows.
    pub(crate) fn new(relation: Relation, table: &dyn Table) -> Result<Self, ConfigError> {
        let wrong = |message: String| {
            ConfigError::new("relations", format!("{}: {message}", relation.name))
        };
        let row = |number: u64| {
            let mut text = Vec::new();
            let first = relation.first_row + number;
            table.write_rows(first..first + 1, &mut text);
            text
        };
        let shape = TupleShape::of(&relation.columns, &row(0)).map_err(wrong)?;
        let heap = HeapLayout::new(relation.rows, &shape, relation.fillfactor);
        let mut key = None;
        if let Some(index) = &relation.index {
            let keys = ascent(&shape, index.column, row, relation.rows).map_err(wrong)?;
            key = Some(Key {
                column: index.column,
                bytes: key_bytes(relation.columns[index.column].kind),
                keys,
                tree: TreeLayout::new(relation.rows, index.fillfactor),
            });
        }
        let planned = Self {
            shape,
            heap,
            key,
            relation,
        };
        if let Some(blocks) = planned
            .forks()
            .map(|fork| planned.blocks(fork))
            .find(|blocks| *blocks > MOST_BLOCKS)
        {
            let message = format!(
                "{}: {blocks} pages, PostgreSQL allows {MOST_BLOCKS}; more partitions make smaller ones",
                planned.relation.name
            );
            return Err(ConfigError::new("relations", message));
        }
        Ok(planned)
    }

    pub(crate) fn forks(&self) -> impl Iterator<Item = Fork> + use<> {
        let index = self.key.is_some().then_some(Fork::Index);
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

    /// The number of pages of a fork.
    pub(crate) fn blocks(&self, fork: Fork) -> u64 {
        match (fork, &self.key) {
            (Fork::Index, Some(key)) => key.tree.blocks(),
            (Fork::VisibilityMap, _) => self.heap.map_blocks(),
            _ => self.heap.blocks(),
        }
    }

    /// Fills a page. The index' first one comes as it is in the file that is there.
    pub(crate) fn fill(
        &self,
        fork: Fork,
        block: u64,
        table: &dyn Table,
        page: &mut Page,
        text: &mut Vec<u8>,
    ) -> Result<(), PieceError> {
        match (fork, &self.key) {
            (Fork::Index, Some(key)) if block == 0 => fill_metapage(&key.tree, page),
            (Fork::Index, Some(key)) => {
                self.index_rows(key).fill(block, page);
                Ok(())
            }
            (Fork::VisibilityMap, _) => {
                self.heap.fill_map(block, page);
                Ok(())
            }
            _ => self.heap_rows(table).fill(block, page, text),
        }
    }

    fn heap_rows<'a>(&'a self, table: &'a dyn Table) -> HeapRows<'a> {
        HeapRows {
            layout: self.heap,
            shape: &self.shape,
            table,
            first_row: self.relation.first_row,
            key: self.key.as_ref().map(|key| (key.column, key.keys)),
        }
    }

    fn index_rows<'a>(&'a self, key: &'a Key) -> IndexRows<'a> {
        IndexRows {
            tree: &key.tree,
            heap: self.heap,
            keys: key.keys,
            key_bytes: key.bytes,
        }
    }
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
