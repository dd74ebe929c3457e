//! Properties that hold for all that a server sends. Shared with the fuzz targets in `fuzz/`.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each target uses its part; what is unwrapped is asserted"
)]

use std::sync::Arc;

use plinth_wire::{
    ChannelBinding, Encryption, FrameError, Login, Method, Methods, RowError, Scanner, ServerError,
    Startup, StartupError, column_names, fields,
};

/// The frames in `bytes` are the same however they are split. Bodies are compared where they are kept.
pub(crate) fn scan(bytes: &[u8]) {
    let whole = frames(bytes, bytes.len().max(1));
    for piece in [1, 2, 5, 1000] {
        let cut = frames(bytes, piece);
        assert_eq!(whole.1, cut.1, "in pieces of {piece}");
        assert_eq!(whole.0, cut.0, "in pieces of {piece}");
    }
}

type Frames = (Vec<(u8, Vec<u8>)>, Option<FrameError>);

fn frames(bytes: &[u8], piece: usize) -> Frames {
    let mut scanner = Scanner::new();
    let mut frames = Vec::new();
    for mut input in bytes.chunks(piece) {
        loop {
            match scanner.next(&mut input) {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    let keeps = b"ENRSKZv".contains(&frame.tag);
                    let body = if keeps {
                        frame.body.to_vec()
                    } else {
                        Vec::new()
                    };
                    frames.push((frame.tag, body));
                }
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

/// What is read from the body of a message is part of it, and there are as many items as its count says, or an error at
/// the end.
pub(crate) fn bodies(bytes: &[u8]) {
    let names: Vec<_> = column_names(bytes).collect();
    check_items(bytes, &names);
    assert!(names.iter().flatten().all(|name| !name.contains(&0)));
    let fields: Vec<_> = fields(bytes).collect();
    check_items(bytes, &fields);
    let held: usize = fields.iter().flatten().flatten().map(|it| it.len()).sum();
    assert!(held <= bytes.len());
    let error = ServerError::parse(bytes);
    // A byte that is not valid text becomes a character of at most three bytes.
    assert!(error.to_string().len() <= 3 * bytes.len() + 64);
    assert!(!error.is_fatal() || error.severity.len() == 5);
}

fn check_items<T>(bytes: &[u8], items: &[Result<T, RowError>]) {
    let Some(count) = bytes.first_chunk() else {
        assert!(matches!(items, [Err(RowError)]));
        return;
    };
    let count = usize::from(u16::from_be_bytes(*count));
    let whole = items.iter().take_while(|item| item.is_ok()).count();
    assert!(whole == count || (whole < count && items.len() == whole + 1));
}

/// Plays the client of a login to a server that sends `bytes`, of which the first selects the kind of client.
pub(crate) fn startup(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    let whole = log_in(*kind, bytes, bytes.len().max(1));
    for piece in [1, 3, 1000] {
        let cut = log_in(*kind, bytes, piece);
        // The owner of a session reads on; bytes that arrive together with it may still be an error.
        let went_on = cut.starts_with("session") && whole != "not yet";
        assert!(
            whole == cut || went_on,
            "whole: {whole}; in pieces of {piece}: {cut}"
        );
    }
}

/// How a login ends, as text: with a session, with an error, or not yet.
fn log_in(kind: u8, bytes: &[u8], piece: usize) -> String {
    let login = Login {
        user: "u",
        password: (kind & 1 == 0).then_some("geheim"),
        parameters: &[("database", "d")],
        methods: match kind >> 5 {
            0 => Methods::parse("scram-sha-256").unwrap(),
            1 => Methods::parse("!none,!md5").unwrap(),
            _ => Methods::ALL,
        },
        channel_binding: match kind >> 1 & 3 {
            0 => ChannelBinding::Disable,
            1 => ChannelBinding::Require,
            _ => ChannelBinding::Prefer,
        },
        encryption: match kind >> 3 & 3 {
            0 => Encryption::Tls(Some(&[7; 32])),
            1 => Encryption::Tls(None),
            _ => Encryption::None,
        },
    };
    let mut out = Vec::new();
    let mut startup = Startup::new(&login, &Arc::default(), &mut out).unwrap();
    for input in bytes.chunks(piece) {
        let before = out.len();
        let session = startup.receive(input, &mut out);
        // An answer is never much longer than the server's message, so that no server can make a client flood the
        // network.
        assert!(out.len() - before <= 64 * input.len() + 256);
        match session {
            Ok(None) => {}
            Ok(Some(session)) => {
                assert!(startup.is_authenticated());
                return format!("session {:?} {:?}", session.process_id, session.parameters);
            }
            Err(error) => return check_error(&error, bytes),
        }
    }
    "not yet".to_owned()
}

fn check_error(error: &StartupError, said: &[u8]) -> String {
    let words = error.to_string();
    let is_said = |secret: &[u8]| said.windows(secret.len()).any(|part| part == secret);
    assert!(!words.contains("geheim") || is_said(b"geheim"), "{words}");
    assert!(!words.is_empty());
    if let StartupError::NotAllowed { asked, .. } = error {
        assert_ne!(*asked, Method::ScramSha256);
    }
    words
}
