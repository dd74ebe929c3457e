//! Any bytes as a script.
#![no_main]

#[path = "../../crates/script/tests/support/exercise.rs"]
mod exercise;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| exercise::exercise(&String::from_utf8_lossy(bytes)));
