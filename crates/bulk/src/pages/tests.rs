//! Real files in small segments: cut anywhere they hold the same pages, what is whole is kept, and the rest is not left.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use crate::pages::config::PageConfig;
use crate::pages::page::PAGE_BYTES;
use crate::pages::run::{PageResult, PageRun};
use crate::pages::segment::SEGMENT_BLOCKS;

const ROWS: u64 = 200_000;
/// 185 rows a page; leaves of 366 keys, and three pages above them.
const HEAP_BLOCKS: u64 = ROWS.div_ceil(185);
const SMALL: u64 = 300;

fn config(folder: &Path, changes: &[(&str, &str)]) -> PageConfig {
    let mut json = format!(
        r#"{{"generator": {{"kind": "columns", "table": "t", "rows": {ROWS}, "seed": 1, "columns": [
            {{"kind": "sequence", "first": 1, "step": 1}}, {{"kind": "uniform", "min": 1, "max": 9}}]}},
        "threads": 3, "checksums": true, "relations": [{{"table": 0, "first_row": 0, "rows": {ROWS}, "name": "t",
            "columns": [{{"type": "int8"}}, {{"type": "int2"}}], "heap": "{0}/7", "fillfactor": 100,
            "index": {{"path": "{0}/8", "column": 0, "fillfactor": 90}}}}]}}"#,
        folder.display()
    );
    for (from, to) in changes {
        assert!(json.contains(from), "{from}");
        json = json.replace(from, to);
    }
    serde_json::from_str(&json).unwrap()
}

/// A table and its key, as CREATE TABLE leaves them.
fn empty(folder: &Path) {
    fs::write(folder.join("7"), b"").unwrap();
    let mut metapage = vec![0; PAGE_BYTES];
    metapage[18..20].copy_from_slice(&(8192_u16 | 4).to_le_bytes());
    metapage[24..32].copy_from_slice(&0x0000_0004_0005_3162_u64.to_le_bytes());
    fs::write(folder.join("8"), metapage).unwrap();
}

pub(super) fn write(config: PageConfig, segment_blocks: u64) -> PageResult {
    let run = PageRun::with_segments(config, segment_blocks).unwrap();
    run.start(|| true).unwrap();
    assert!(run.wait(Duration::from_secs(60), || true));
    let progress = run.progress();
    assert!(progress.finished);
    let result = run.result().unwrap();
    if result.errors.is_empty() && !result.interrupted {
        assert_eq!(progress.rows_done, progress.rows_total);
    }
    result
}

/// All bytes of a fork, from as many files as there are.
pub(super) fn content(first: &Path) -> (usize, Vec<u8>) {
    let mut all = fs::read(first).unwrap();
    let mut files = 1;
    while let Ok(more) = fs::read(format!("{}.{files}", first.display())) {
        all.extend(more);
        files += 1;
    }
    (files, all)
}

pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name =
        |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = entries.map(name).collect();
    names.sort();
    names
}

#[test]
fn segments_of_any_size_hold_the_same_pages() {
    let whole = tempfile::tempdir().unwrap();
    empty(whole.path());
    let result = write(config(whole.path(), &[]), SEGMENT_BLOCKS);
    assert_eq!(
        (result.rows, &result.errors[..], result.interrupted),
        (ROWS, &[][..], false)
    );
    for segment_blocks in [SMALL, HEAP_BLOCKS - 1, HEAP_BLOCKS] {
        let cut = tempfile::tempdir().unwrap();
        empty(cut.path());
        let result = write(config(cut.path(), &[]), segment_blocks);
        assert_eq!((result.rows, &result.errors[..]), (ROWS, &[][..]));
        let (files, heap) = content(&cut.path().join("7"));
        assert_eq!(files as u64, HEAP_BLOCKS.div_ceil(segment_blocks));
        for fork in ["7", "7_vm", "8"] {
            assert!(
                content(&cut.path().join(fork)).1 == content(&whole.path().join(fork)).1,
                "{fork}"
            );
        }
        assert_eq!(heap.len() as u64, HEAP_BLOCKS * PAGE_BYTES as u64);
        assert_eq!(
            result.bytes_written as usize,
            PAGE_BYTES + heap.len() + content(&cut.path().join("8")).1.len()
        );
    }
}

#[test]
fn a_load_that_was_killed_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    empty(folder.path());
    write(config(folder.path(), &[]), SMALL);
    let all = names(folder.path());
    let (_, heap) = content(&folder.path().join("7"));

    // As it is left by a kill: the first segment and the index are not in place, a file is unfinished.
    let (_, index) = content(&folder.path().join("8"));
    fs::remove_file(folder.path().join("7.2")).unwrap();
    fs::remove_file(folder.path().join("8.1")).unwrap();
    empty(folder.path());
    fs::write(folder.path().join("7.2.plinth"), vec![0xEE; 5_000_000]).unwrap();
    fs::write(folder.path().join("7_vm"), vec![0xEE; PAGE_BYTES]).unwrap();
    let result = write(config(folder.path(), &[]), SMALL);

    assert_eq!((result.rows, &result.errors[..]), (ROWS, &[][..]));
    let kept = (HEAP_BLOCKS - 2 * SMALL) * PAGE_BYTES as u64;
    let total = heap.len() + PAGE_BYTES + index.len();
    assert_eq!(result.bytes_written, total as u64 - kept);
    assert_eq!(names(folder.path()), all);
    assert!(content(&folder.path().join("7")).1 == heap);
    assert!(content(&folder.path().join("8")).1 == index);

    let again = write(config(folder.path(), &[]), SMALL);
    assert_eq!(
        (again.rows, again.bytes_written),
        (ROWS, PAGE_BYTES as u64),
        "only the visibility map"
    );
}

/// The folder belongs to the server's user, the writer is often root.
#[test]
fn a_link_in_the_place_of_an_unfinished_file_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    empty(folder.path());
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    fs::write(elsewhere.path(), b"not theirs").unwrap();
    symlink(elsewhere.path(), folder.path().join("7.plinth")).unwrap();
    let result = write(config(folder.path(), &[]), SEGMENT_BLOCKS);
    assert_eq!((result.rows, &result.errors[..]), (ROWS, &[][..]));
    assert_eq!(fs::read(elsewhere.path()).unwrap(), b"not theirs");
    assert!(
        fs::symlink_metadata(folder.path().join("7"))
            .unwrap()
            .is_file()
    );
}

#[test]
fn what_is_not_empty_or_not_there_is_left_alone() {
    let table: [(&str, Option<&[u8]>, &str, &str); 4] = [
        (
            "7",
            Some(&[1; PAGE_BYTES]),
            "unsupported",
            "has 8192 bytes; allowed are 0",
        ),
        (
            "8",
            Some(&[1; 2 * PAGE_BYTES]),
            "unsupported",
            "has 16384 bytes; allowed are 8192",
        ),
        (
            "8",
            Some(&[1; PAGE_BYTES]),
            "unsupported",
            "no B-tree of version 4",
        ),
        ("7", None, "io", "No such file or directory"),
    ];
    for (file, bytes, kind, message) in table {
        let folder = tempfile::tempdir().unwrap();
        empty(folder.path());
        match bytes {
            Some(bytes) => fs::write(folder.path().join(file), bytes).unwrap(),
            None => fs::remove_file(folder.path().join(file)).unwrap(),
        }
        let result = write(config(folder.path(), &[]), SEGMENT_BLOCKS);
        let failure = &result.errors[0];
        assert_eq!(
            (failure.kind, &failure.table[..]),
            (kind, "t"),
            "{failure:?}"
        );
        assert!(failure.message.contains(message), "{failure:?}");
        assert!(failure.path.ends_with(file), "{failure:?}");
        assert_eq!(fs::read(folder.path().join(file)).ok().as_deref(), bytes);
        assert!(
            !names(folder.path())
                .iter()
                .any(|name| name.ends_with(".plinth"))
        );
    }
}

#[test]
fn a_stop_leaves_whole_files_only() {
    let folder = tempfile::tempdir().unwrap();
    empty(folder.path());
    let run = PageRun::with_segments(config(folder.path(), &[]), SMALL).unwrap();
    run.stop();
    run.start(|| true).unwrap();
    assert!(run.wait(Duration::from_secs(10), || true));
    let result = run.result().unwrap();
    assert!(
        result.interrupted && result.errors.is_empty() && result.rows == 0,
        "{result:?}"
    );
    assert_eq!(names(folder.path()), ["7", "8"]);
    assert!(run.start(|| true).is_err());
}

#[test]
fn tables_that_cannot_be_pages_are_refused_before_any_file() {
    let nowhere = Path::new("/nowhere");
    let table: [(&[(&str, &str)], &str); 11] = [
        (&[(r#""threads": 3"#, r#""threads": 0"#)], "threads: got 0"),
        (
            &[(r#""first_row": 0"#, r#""first_row": 1"#)],
            "relations: t: got 200000 rows from row 1",
        ),
        (
            &[(r#""table": 0"#, r#""table": 1"#)],
            "relations: t: table: got 1",
        ),
        (
            &[("/nowhere/7", "nowhere/7")],
            "relations.heap, relations.index.path: t: got nowhere/7",
        ),
        (
            &[("/nowhere/8", "/nowhere/7")],
            "relations: got /nowhere/7 more than once",
        ),
        (
            &[(r#""fillfactor": 90"#, r#""fillfactor": 9"#)],
            "relations.index.fillfactor: t: got 9",
        ),
        (
            &[(r#""column": 0"#, r#""column": 2"#)],
            "relations.index.column: t: got 2",
        ),
        (
            &[(r#"{"type": "int2"}"#, r#"{"type": "bpchar"}"#)],
            "relations.columns: t: column 1: length",
        ),
        (
            &[(r#""step": 1"#, r#""step": -1"#)],
            "relations: t: column 0: keys have to ascend evenly, and 0 follows 1",
        ),
        (
            &[
                (r#""step": 1"#, r#""step": 200000"#),
                (r#"{"type": "int8"}"#, r#"{"type": "int2"}"#),
            ],
            "relations: t: column 0: does not fit in int2",
        ),
        (
            &[
                (
                    r#"{"kind": "uniform", "min": 1, "max": 9}"#,
                    r#"{"kind": "text", "size_bytes": 2005, "piece_bytes": 9}"#,
                ),
                (r#"{"type": "int2"}"#, r#"{"type": "text"}"#),
            ],
            "relations: t: a row has 2041 bytes, allowed are up to 2032",
        ),
    ];
    for (changes, message) in table {
        let error = PageRun::new(config(nowhere, changes))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

/// Only the first two rows are looked at before; a later one may have no place among them.
#[test]
fn a_later_row_that_does_not_fit_is_an_error_and_leaves_nothing() {
    let drawn = r#"{"kind": "uniform", "min": 1, "max": 9}"#;
    let counted = (drawn, r#"{"kind": "sequence", "first": 1, "step": 1}"#);
    let by_a_drawn_key = (r#""column": 0"#, r#""column": 1"#);
    // A seed whose first two draws ascend, so that nothing is seen of the others yet.
    let ascending = (r#""seed": 1"#, r#""seed": 3"#);
    let table = [
        (vec![counted], "column 1: does not fit in int2"),
        (
            vec![by_a_drawn_key, ascending],
            "keys have to ascend evenly",
        ),
    ];
    for (changes, message) in table {
        let folder = tempfile::tempdir().unwrap();
        empty(folder.path());
        let result = write(config(folder.path(), &changes), SEGMENT_BLOCKS);
        assert_eq!(result.rows, 0);
        let failure = &result.errors[0];
        assert_eq!(failure.kind, "unsupported");
        assert!(failure.message.contains(message), "{failure:?}");
        assert_eq!(names(folder.path()), ["7", "8"]);
    }
}
