//! However the bytes are split, the scanner finds the same frames, and no bytes make it panic.

#![allow(clippy::unwrap_used, reason = "a test")]

use plinth_wire::{FrameError, Scanner};
use proptest::prelude::*;

/// Kinds whose bodies are kept when they are split.
const KEPT: &[u8] = b"ENRSKZ";

type Frames = Vec<(u8, Vec<u8>)>;

fn encoded(frames: &Frames) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (tag, body) in frames {
        bytes.push(*tag);
        bytes.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
    }
    bytes
}

/// Feeds `bytes` split at `cuts`; bodies that are not kept are left out.
fn scanned(bytes: &[u8], cuts: &[usize]) -> Result<Frames, FrameError> {
    let mut scanner = Scanner::new();
    let mut frames = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([bytes.len()]) {
        let mut piece = &bytes[start..end];
        while let Some(frame) = scanner.next(&mut piece)? {
            let body = if KEPT.contains(&frame.tag) {
                frame.body.to_vec()
            } else {
                Vec::new()
            };
            frames.push((frame.tag, body));
        }
        assert!(piece.is_empty(), "all input is taken");
        start = end;
    }
    Ok(frames)
}

fn a_frame() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let body = |longest| proptest::collection::vec(any::<u8>(), 0..longest);
    prop_oneof![
        (
            proptest::sample::select(b"12n3sIc".to_vec()),
            Just(Vec::new())
        ),
        (
            proptest::sample::select(b"DTdAVENCSKRtGHWv".to_vec()),
            body(300)
        ),
        (Just(b'Z'), proptest::collection::vec(any::<u8>(), 1)),
    ]
}

fn cuts(length: usize) -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0..=length, 0..20).prop_map(|mut cuts| {
        cuts.sort_unstable();
        cuts
    })
}

proptest! {
    #[test]
    fn any_cutting_gives_the_same_frames(
        (frames, cuts) in proptest::collection::vec(a_frame(), 0..20)
            .prop_flat_map(|frames| { let length = encoded(&frames).len(); (Just(frames), cuts(length)) })
    ) {
        let bytes = encoded(&frames);
        let expected: Frames = frames
            .into_iter()
            .map(|(tag, body)| (tag, if KEPT.contains(&tag) { body } else { Vec::new() }))
            .collect();
        prop_assert_eq!(scanned(&bytes, &cuts).unwrap(), expected.clone());
        let everywhere: Vec<usize> = (1..bytes.len()).collect();
        prop_assert_eq!(scanned(&bytes, &everywhere).unwrap(), expected);
    }

    #[test]
    fn garbage_is_refused_or_skipped_the_same_way_however_it_is_cut(
        (bytes, cuts) in proptest::collection::vec(any::<u8>(), 0..2000)
            .prop_flat_map(|bytes| { let length = bytes.len(); (Just(bytes), cuts(length)) })
    ) {
        prop_assert_eq!(scanned(&bytes, &cuts), scanned(&bytes, &[]));
    }

    #[test]
    fn a_corrupted_stream_never_panics(
        frames in proptest::collection::vec(a_frame(), 1..10),
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = encoded(&frames);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let everywhere: Vec<usize> = (1..bytes.len()).collect();
        prop_assert_eq!(scanned(&bytes, &everywhere).is_err(), scanned(&bytes, &[]).is_err());
    }
}
