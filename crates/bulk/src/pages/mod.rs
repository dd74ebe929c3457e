//! The page writer: a stopped server's files of empty tables, filled directly with generated rows.
//!
//! What it leaves is what `COPY FREEZE` and `ADD PRIMARY KEY` leave: heap pages whose rows are frozen and visible to all, the
//! visibility map that says so, and the B-tree of the key. Rows are taken from [`Table`](crate::table::Table) in COPY's text
//! format, so there is one source of rows. `docs/internals/page-writer.md` describes the formats, and what makes it safe.
//!
//! Any page can be written without those before it: where all rows of a relation are equally wide, a page holds a known number of
//! them, and keys ascend evenly, so that the key of any row is known. Rows of several widths come in chunks, whose pages are
//! counted first; their keys are left to the server. So threads share the files in pieces of some MB, and a resumed load need
//! not read a file that is complete under its own name.

mod btree;
mod checksum;
#[cfg(test)]
mod chunk_tests;
mod chunks;
mod config;
mod counting;
mod failure;
mod file;
mod form;
mod heap;
mod index;
mod numeric;
mod page;
mod relation;
mod run;
mod segment;
#[cfg(test)]
mod tests;
mod text;
mod tuple;

pub use config::{ColumnType, IndexFile, PageColumn, PageConfig, Relation};
pub use failure::PageFailure;
pub use run::{PageProgress, PageResult, PageRun};
