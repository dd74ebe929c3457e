//! A load in steady state allocates nothing for a transaction of any script.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../wire/tests/support/allocator.rs"]
mod allocator;
#[path = "support/peer.rs"]
mod peer;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs, process};

use plinth_load::{Config, LoadRun};
use serde_json::{Value, json};

/// Answers in a window, and windows in which everything may get as large as it needs.
const WINDOW: usize = 250;
const FIRST_WINDOWS: usize = 6;
const WINDOWS: usize = 26;

/// A folder of the test's own, deleted at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("plinth-load-{name}-{}", process::id()));
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Allocations of the whole process in each window of answers after the first ones, while the load runs. `changes` are
/// keys of the configuration; a log's `prefix` is put into the folder.
fn allocations(name: &str, sources: &[&str], mut changes: Value) -> Vec<u64> {
    let folder = Folder::new(name);
    let counts: Arc<[AtomicU64]> = (0..=WINDOWS).map(|_| AtomicU64::new(0)).collect();
    let answers = AtomicUsize::new(0);
    let marks = Arc::clone(&counts);
    peer::serve(
        &folder.0,
        Arc::new(move || {
            let before = answers.fetch_add(1, SeqCst);
            if before.is_multiple_of(WINDOW)
                && let Some(mark) = marks.get(before / WINDOW)
            {
                mark.store(allocator::allocations(), SeqCst);
            }
        }),
    );
    if let Some(log) = changes.get_mut("log") {
        *log = json!({"prefix": folder.0.join("log")});
    }
    let scripts: Vec<_> = sources
        .iter()
        .enumerate()
        .map(|(number, source)| json!({"name": number.to_string(), "source": source}))
        .collect();
    let mut config = json!({
        "connection": {"host": folder.0, "port": 5432, "user": "u", "database": "d"},
        "clients": 2,
        "threads": 1,
        "protocol": "prepared",
        "scripts": scripts,
        "variables": {"scale": "10"},
        "duration_s": 60.0,
        "seed": 1,
    });
    let config_keys = config.as_object_mut().unwrap();
    config_keys.extend(changes.as_object().unwrap().clone());
    let config: Config = serde_json::from_value(config).unwrap();
    let run = LoadRun::new(config).unwrap();
    run.start(|| true).unwrap();
    while counts[WINDOWS].load(SeqCst) == 0 {
        assert!(!run.wait(Duration::from_millis(1), || true), "it ended");
    }
    run.stop();
    assert!(run.wait(Duration::from_secs(20), || true));
    let result = run.result().unwrap();
    assert!(result.errors.is_empty(), "{:?}", result.errors);
    let counts: Vec<_> = counts.iter().map(|count| count.load(SeqCst)).collect();
    let grown = counts[FIRST_WINDOWS..].windows(2);
    grown.map(|pair| pair[1] - pair[0]).collect()
}

/// One after the other, since the allocations of all threads are counted.
static ALONE: Mutex<()> = Mutex::new(());

/// A second's end and a set of latencies that grows for its first long one allocate; transactions do not.
fn assert_none(name: &str, sources: &[&str], changes: Value) {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let windows = allocations(name, sources, changes);
    let free = windows.iter().filter(|count| **count == 0).count();
    assert!(
        free * 2 > windows.len() && windows.iter().all(|count| *count < WINDOW as u64 / 2),
        "allocations in windows of {WINDOW} answers: {windows:?}"
    );
}

fn builtin(name: &str) -> &'static str {
    plinth_script::builtin(name).unwrap()
}

#[test]
fn built_in_scripts() {
    for protocol in ["simple", "extended", "prepared"] {
        for name in ["select-only", "tpcb-like"] {
            let changes = json!({"protocol": protocol});
            assert_none(&format!("{protocol}-{name}"), &[builtin(name)], changes);
        }
    }
}

#[test]
fn pipelines() {
    let script = "\\startpipeline\nselect 1;\n\\set a random(1, 9)\nselect :a;\n\\syncpipeline\nselect 2;\n\\endpipeline\n";
    assert_none("pipeline", &[script], json!({}));
}

#[test]
fn transactions_that_are_compiled_in() {
    let native =
        json!({"workload": "account-mix", "keys": {"distribution": "zipfian", "parameter": 1.1}});
    let of = |name| json!({"name": name, "native": native});
    let changes = json!({"scripts": [of("lookup"), of("transfer")]});
    assert_none("native", &[], changes);
}

#[test]
fn results_that_become_variables() {
    let script = "select 17 as x \\gset one_\nselect :one_x as x \\aset\nselect :x;\n";
    assert_none("gset", &[script], json!({}));
}

#[test]
fn sleeps_branches_and_scripts_without_statements() {
    let sleeps = "\\if random(0, 1) = 1\n\\sleep 1 us\n\\endif\nselect 1;\n";
    let changes = json!({"command_latencies": true});
    assert_none("turns", &[sleeps, "\\set a 1.5 * 2\n"], changes);
}

#[test]
fn an_open_loop_with_a_log() {
    let rate = json!({"arrivals": "poisson", "stages": [{"from_tps": 20000.0, "to_tps": 20000.0}]});
    let changes = json!({"rate": rate, "latency_limit_s": 5.0, "log": {}});
    assert_none("open-loop", &[builtin("select-only")], changes);
}
