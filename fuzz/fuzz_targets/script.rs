//! Any bytes as a script.
#![no_main]

#[path = "../../crates/script/tests/support/exercise.rs"]
mod exercise;

use libfuzzer_sys::fuzz_target;
use plinth_script::lossless;

fuzz_target!(|bytes: &[u8]| {
    let text = lossless::from_bytes(bytes);
    assert_eq!(*lossless::to_bytes(&text), *bytes);
    exercise::exercise(&text);
});
