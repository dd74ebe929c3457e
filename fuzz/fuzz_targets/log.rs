//! Any bytes as the log of a server, in any format.
#![no_main]

#[path = "../../crates/log/tests/support/exercise.rs"]
mod exercise;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| exercise::log(bytes));
