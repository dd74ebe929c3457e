//! Servers that send arbitrary bytes: what the fuzzers run for hours, here for a second or two, and their whole corpus.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "support/allocator.rs"]
mod allocator;
#[path = "support/exercise.rs"]
mod exercise;

use std::fs;
use std::path::Path;

use plinth_wire::{KEPT_BYTES, Scanner};
use proptest::prelude::*;

/// The fuzzers' corpus, and what real servers and other programs send.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| fs::read(entry.unwrap().path()).unwrap())
        .collect();
    files.sort();
    assert!(files.len() > 10, "only {} files", files.len());
    files
}

#[test]
fn the_corpus() {
    corpus("scan").iter().for_each(|file| exercise::scan(file));
    corpus("startup")
        .iter()
        .for_each(|file| exercise::startup(file));
    corpus("bodies")
        .iter()
        .for_each(|file| exercise::bodies(file));
}

fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as i32 + 4).to_be_bytes();
    [&[tag], &length[..], body].concat()
}

/// Messages of a login, valid ones among them, in any order.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let words = proptest::sample::select(vec![
        &b"SCRAM-SHA-256\0\0"[..],
        b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0",
        b"OAUTHBEARER\0\0",
        b"r=x,s=AAAA,i=4096",
        b"r=,s=,i=",
        b"v=AAAA",
        b"e=other-error",
        b"salt",
        b"",
        b"\0\0\0\0",
    ]);
    let authentication = (-1..14_i32, words)
        .prop_map(|(code, data)| frame(b'R', &[&code.to_be_bytes()[..], data].concat()));
    let bodies = proptest::collection::vec(any::<u8>(), 0..40);
    let other = (proptest::sample::select(b"ENSKZvDRTA".to_vec()), bodies)
        .prop_map(|(tag, body)| frame(tag, &body));
    let good = proptest::sample::select(vec![
        frame(b'R', &[0; 4]),
        frame(b'S', b"server_version\x0018.1\0"),
        frame(b'K', &[1; 8]),
        frame(b'N', b"SNOTICE\0Mhello\0\0"),
        frame(b'Z', b"I"),
        frame(b'v', &[0, 3, 0, 0, 0, 0, 0, 0]),
        frame(b'E', b"SFATAL\0C57P03\0Mstarting up\0\0"),
    ]);
    let noise = proptest::collection::vec(any::<u8>(), 0..12);
    prop_oneof![4 => authentication, 2 => other, 4 => good, 1 => noise]
}

fn mutant(target: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<proptest::sample::Index>(), any::<u8>());
    let changes = proptest::collection::vec(change, 0..8);
    (proptest::sample::select(corpus(target)), changes).prop_map(|(mut bytes, changes)| {
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn logins_of_any_messages(
        kind in any::<u8>(),
        messages in proptest::collection::vec(message(), 0..8),
    ) {
        exercise::startup(&[&[kind], &messages.concat()[..]].concat());
    }

    #[test]
    fn changed_logins(bytes in mutant("startup")) {
        exercise::startup(&bytes);
    }

    #[test]
    fn changed_frames(bytes in mutant("scan")) {
        exercise::scan(&bytes);
    }
}

/// Whichever bytes a server sends, and however many, reading it takes at most the memory that is kept of a frame, twice while
/// the buffer grows.
#[test]
fn frames_are_held_in_bounds() {
    let long = |tag: u8| frame(tag, &vec![b'x'; 4 * KEPT_BYTES]);
    let mut inputs = corpus("scan");
    inputs.extend(b"TDENAS".iter().map(|tag| long(*tag)));
    inputs.push([&b"E\x7f\xff\xff\xff"[..], &vec![b'x'; 8 * KEPT_BYTES]].concat());
    for bytes in inputs {
        for piece in [1, 1000] {
            let held_bytes = allocator::peak_bytes(|| {
                let mut scanner = Scanner::new();
                for mut input in bytes.repeat(3).chunks(piece) {
                    while let Ok(Some(_)) = scanner.next(&mut input) {}
                }
            });
            let own_bytes = held_bytes - 3 * bytes.len();
            assert!(own_bytes <= 3 * KEPT_BYTES, "{own_bytes} bytes are held");
        }
    }
}

#[test]
fn a_flood_is_held_in_bounds() {
    // Many notices, many parameters: memory stays bounded however long a server sends them; the deadline of the login
    // ends it.
    let notice = frame(b'N', &[b'x'; 20_000]);
    let notices = [&[0], &notice.repeat(50)[..]].concat();
    let held_bytes = allocator::peak_bytes(|| exercise::startup(&notices));
    assert!(held_bytes < 1 << 20, "{held_bytes} bytes are held");
    let parameters: Vec<u8> = (0..3000)
        .flat_map(|number| frame(b'S', format!("p{number}\0v\0").as_bytes()))
        .collect();
    exercise::startup(&[&[0xff], &parameters[..]].concat());
    exercise::startup(&[&[0], &b"N\x7f\xff\xff\xff"[..], &vec![0; 3_000_000]].concat());
}
