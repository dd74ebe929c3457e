//! Any bytes as the body of a message: rows, their columns' names, errors.
#![no_main]

#[path = "../../crates/wire/tests/support/exercise.rs"]
mod exercise;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| exercise::bodies(bytes));
