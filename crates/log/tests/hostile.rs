//! Logs and replay files of arbitrary bytes: what the fuzzers run for hours, here for a second or two, and their whole corpus.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "support/exercise.rs"]
mod exercise;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| fs::read(entry.unwrap().path()).unwrap())
        .collect();
    files.sort();
    assert!(files.len() > 5, "only {} files", files.len());
    files
}

#[test]
fn the_corpus() {
    corpus("log").iter().for_each(|file| exercise::log(file));
    corpus("replay_file")
        .iter()
        .for_each(|file| exercise::replay_file(file));
}

/// A file of the corpus with bytes changed, taken out or put in.
fn changed(target: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8);
    let changes = prop::collection::vec(change, 1..6);
    (prop::sample::select(corpus(target)), changes).prop_map(|(mut file, changes)| {
        for (at, byte, kind) in changes {
            if file.is_empty() {
                break;
            }
            let at = at.index(file.len());
            match kind {
                0 => file[at] = byte,
                1 => file.insert(at, byte),
                _ => drop(file.remove(at)),
            }
        }
        file
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_changed_log_is_read_or_refused(file in changed("log")) {
        exercise::log(&file);
    }

    #[test]
    fn a_changed_replay_file_is_read_or_refused(file in changed("replay_file")) {
        exercise::replay_file(&file);
    }
}
