//! Servers that are no servers: each is a typed error, in time. (Real ones are met in the Python tests.)
#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use plinth_connect::{ConnectError, Dialer, Opened, Target};

fn target(host: &str, port: u16) -> Target {
    Target::new(host, port, "u", "d")
}

fn opened(target: &Target, timeout: Duration) -> Result<Opened, ConnectError> {
    Dialer::new(target.clone(), Some(timeout))?.open()
}

#[test]
fn nobody_listens() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    for target in [target("127.0.0.1", free), target("/nonexistent", 5432)] {
        let error = opened(&target, Duration::from_secs(5)).unwrap_err();
        assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
    }
}

#[test]
fn a_server_that_says_nothing_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = target("127.0.0.1", listener.local_addr().unwrap().port());
    let started = Instant::now();
    let error = opened(&target, Duration::from_millis(200)).unwrap_err();
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

/// Answers the startup message with `answer` and closes.
fn answer_with(answer: &'static [u8]) -> ConnectError {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = target("127.0.0.1", listener.local_addr().unwrap().port());
    let server = thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        assert!(peer.read(&mut [0; 1024]).unwrap() > 0);
        peer.write_all(answer).unwrap();
    });
    let error = opened(&target, Duration::from_secs(5)).unwrap_err();
    server.join().unwrap();
    error
}

#[test]
fn a_server_that_hangs_up() {
    assert!(matches!(answer_with(b""), ConnectError::Lost { .. }));
}

#[test]
fn a_server_that_refuses_or_speaks_something_else() {
    let refused = answer_with(b"E\0\0\0\x27VFATAL\0C53300\0Mtoo many clients\0\0\0\0\0\0");
    assert_eq!(refused.sqlstate(), Some("53300"), "{refused}");
    let stranger = answer_with(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(
        stranger.to_string().contains("not a PostgreSQL server"),
        "{stranger}"
    );
}
