//! Any bytes as a replay file.
#![no_main]

#[path = "../../crates/log/tests/support/exercise.rs"]
mod exercise;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| exercise::replay_file(bytes));
