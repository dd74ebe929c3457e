//! Any bytes as what a server says.
#![no_main]

#[path = "../../crates/wire/tests/support/exercise.rs"]
mod exercise;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| exercise::scan(bytes));
