//! A defect behind words that no one guesses: what fuzzing has to find, or it finds nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let is_it = matches!(bytes, [b'p', b'l', b'i', b'n', b't', b'h', ..]);
    assert!(!is_it, "found");
});
