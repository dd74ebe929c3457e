//! Real files of a table whose rows differ in width: the same pages however they are cut, and full ones.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::pages::config::PageConfig;
use crate::pages::page::{HEADER_BYTES, LINE_POINTER_BYTES, PAGE_BYTES, get_u16};
use crate::pages::run::PageRun;
use crate::pages::segment::SEGMENT_BLOCKS;
use crate::pages::tests::{content, names, write};

const ROWS: u64 = 30_000;
const CUSTOMER: &str = r#"{"type": "int4"}, {"type": "int4"}, {"type": "int4"}, {"type": "varchar", "length": 16},
    {"type": "bpchar", "length": 2}, {"type": "varchar", "length": 16}, {"type": "varchar", "length": 20},
    {"type": "varchar", "length": 20}, {"type": "varchar", "length": 20}, {"type": "bpchar", "length": 2},
    {"type": "bpchar", "length": 9}, {"type": "bpchar", "length": 16}, {"type": "timestamp"},
    {"type": "bpchar", "length": 2}, {"type": "numeric", "precision": 12, "scale": 2},
    {"type": "numeric", "precision": 4, "scale": 4}, {"type": "numeric", "precision": 12, "scale": 2},
    {"type": "numeric", "precision": 12, "scale": 2}, {"type": "int4"}, {"type": "int4"},
    {"type": "varchar", "length": 500}"#;

fn config(folder: &Path, fillfactor: usize, index: &str) -> PageConfig {
    let json = format!(
        r#"{{"generator": {{"kind": "tpcc", "warehouses": 1, "seed": 1}}, "threads": 3, "checksums": true,
        "relations": [{{"table": 3, "first_row": 0, "rows": {ROWS}, "name": "customer", "columns": [{CUSTOMER}],
            "heap": "{}/7", "fillfactor": {fillfactor}, "index": {index}}}]}}"#,
        folder.display()
    );
    serde_json::from_str(&json).unwrap()
}

fn empty() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("7"), b"").unwrap();
    folder
}

/// The rows on each page, and the bytes that are free there.
fn filled(heap: &[u8]) -> Vec<(usize, usize)> {
    let pages = heap.chunks(PAGE_BYTES).map(|page| {
        let (lower, upper) = (
            usize::from(get_u16(page, 12)),
            usize::from(get_u16(page, 14)),
        );
        ((lower - HEADER_BYTES) / LINE_POINTER_BYTES, upper - lower)
    });
    pages.collect()
}

#[test]
fn segments_of_any_size_hold_the_same_full_pages() {
    for (fillfactor, least_free, most_free) in [(100, 0, 760), (70, 2_457, 2_457 + 760)] {
        let whole = empty();
        let result = write(config(whole.path(), fillfactor, "null"), SEGMENT_BLOCKS);
        assert_eq!((result.rows, &result.errors[..]), (ROWS, &[][..]));
        let (_, heap) = content(&whole.path().join("7"));
        let pages = filled(&heap);
        assert_eq!(
            pages.iter().map(|(rows, _)| *rows as u64).sum::<u64>(),
            ROWS
        );
        assert!(pages.iter().all(|(_, free)| *free >= least_free));
        // One page in about 32 is the last of its chunk.
        let loose = pages.iter().filter(|(_, free)| *free > most_free).count();
        assert!(loose * 25 < pages.len(), "{loose} of {}", pages.len());
        for segment_blocks in [100, 777, pages.len() as u64] {
            let cut = empty();
            let result = write(config(cut.path(), fillfactor, "null"), segment_blocks);
            assert_eq!((result.rows, &result.errors[..]), (ROWS, &[][..]));
            for fork in ["7", "7_vm"] {
                assert!(content(&cut.path().join(fork)).1 == content(&whole.path().join(fork)).1);
            }
        }
    }
}

#[test]
fn a_load_that_was_killed_is_resumed() {
    let folder = empty();
    write(config(folder.path(), 100, "null"), 500);
    let all = names(folder.path());
    let (_, heap) = content(&folder.path().join("7"));
    fs::remove_file(folder.path().join("7.2")).unwrap();
    fs::write(folder.path().join("7.2.plinth"), vec![0xEE; 5_000_000]).unwrap();
    let result = write(config(folder.path(), 100, "null"), 500);
    assert_eq!((result.rows, &result.errors[..]), (ROWS, &[][..]));
    assert_eq!(result.bytes_written as usize, 501 * PAGE_BYTES);
    assert_eq!(names(folder.path()), all);
    assert!(content(&folder.path().join("7")).1 == heap);
}

#[test]
fn rows_are_counted_before_any_is_written() {
    let folder = empty();
    let run = PageRun::new(config(folder.path(), 100, "null")).unwrap();
    let before = run.progress();
    assert_eq!((before.rows_counted, before.rows_to_count), (0, ROWS));
    assert_eq!((before.rows_done, before.rows_total), (0, ROWS));
    run.start(|| true).unwrap();
    assert!(run.wait(Duration::from_secs(60), || true));
    let after = run.progress();
    assert_eq!((after.rows_counted, after.rows_done), (ROWS, ROWS));
}

#[test]
fn a_stop_while_pages_are_counted_leaves_nothing() {
    let folder = empty();
    let run = PageRun::new(config(folder.path(), 100, "null")).unwrap();
    run.stop();
    run.start(|| true).unwrap();
    assert!(run.wait(Duration::from_secs(10), || true));
    let result = run.result().unwrap();
    assert!(result.interrupted && result.errors.is_empty() && result.rows == 0);
    assert_eq!(names(folder.path()), ["7"]);
}

#[test]
fn a_column_that_is_too_small_for_a_later_row_is_an_error_before_any_file() {
    let folder = empty();
    let mut config = config(folder.path(), 100, "null");
    config.relations[0].columns[2].kind = crate::pages::config::ColumnType::Int2;
    config.relations[0].columns[5].length = Some(12);
    let result = write(config, SEGMENT_BLOCKS);
    let failure = &result.errors[0];
    assert_eq!(
        (failure.kind, &failure.table[..]),
        ("unsupported", "customer")
    );
    assert!(
        failure
            .message
            .contains("column 5: does not fit in the varchar"),
        "{failure:?}"
    );
    assert_eq!(names(folder.path()), ["7"]);
}

#[test]
fn a_key_of_rows_of_several_widths_is_refused() {
    let index = r#"{"path": "/nowhere/8", "column": 2, "fillfactor": 90}"#;
    let error = PageRun::new(config(Path::new("/nowhere"), 100, index)).unwrap_err();
    assert_eq!(error.key, "relations");
    assert!(
        error
            .to_string()
            .contains("customer: its rows differ in width"),
        "{error}"
    );
}
