//! A server that answers every statement at once with a row of one column, and allocates nothing while it does.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// Called whenever a client is told that the server is ready for the next statement.
pub(crate) type OnReady = Arc<dyn Fn() + Send + Sync>;

/// Serves connections to the socket of port 5432 in `folder`, each in a thread that ends with its connection.
pub(crate) fn serve(folder: &Path, on_ready: OnReady) {
    let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let on_ready = Arc::clone(&on_ready);
            thread::spawn(move || talk(&mut stream.unwrap(), &on_ready));
        }
    });
}

fn talk(stream: &mut UnixStream, on_ready: &OnReady) {
    let mut input = vec![0; 1 << 20];
    let mut output = Vec::with_capacity(1 << 20);
    let mut filled = 0;
    let mut is_logged_in = false;
    loop {
        match stream.read(&mut input[filled..]) {
            Ok(0) => return,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            Err(error) => panic!("{error}"),
        }
        let mut done = 0;
        // A startup message has no tag.
        while let Some(length) = message_bytes(&input[done..filled], usize::from(is_logged_in)) {
            let tag = if is_logged_in { input[done] } else { 0 };
            answer(tag, &mut output, on_ready);
            is_logged_in = true;
            done += length;
        }
        input.copy_within(done..filled, 0);
        filled -= done;
        if !output.is_empty() && stream.write_all(&output).is_err() {
            return;
        }
        output.clear();
    }
}

/// Length of the message at the beginning of `bytes`, whose length word is at `length_at`, if all of it is there.
fn message_bytes(bytes: &[u8], length_at: usize) -> Option<usize> {
    let word = bytes.get(length_at..length_at + 4)?;
    let length = u32::from_be_bytes(word.try_into().unwrap()) as usize + length_at;
    (bytes.len() >= length).then_some(length)
}

fn answer(tag: u8, output: &mut Vec<u8>, on_ready: &OnReady) {
    const READY: &[u8] = b"Z\0\0\0\x05I";
    const COLUMNS: &[u8] = b"T\0\0\0\x1a\0\x01x\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    const ROW: &[u8] = b"D\0\0\0\x0c\0\x01\0\0\0\x0217";
    const COMPLETE: &[u8] = b"C\0\0\0\x0dSELECT 1\0";
    let parts: &[&[u8]] = match tag {
        0 => &[
            b"R\0\0\0\x08\0\0\0\0",
            b"K\0\0\0\x0c\0\0\0\x01\0\0\0\x02",
            READY,
        ],
        b'P' => &[b"1\0\0\0\x04"],
        b'B' => &[b"2\0\0\0\x04"],
        b'D' => &[COLUMNS],
        b'E' => &[ROW, COMPLETE],
        b'Q' => &[COLUMNS, ROW, COMPLETE, READY],
        b'S' => &[READY],
        b'X' => &[],
        other => panic!("a message '{}' is not known here", other as char),
    };
    parts.iter().for_each(|part| output.extend_from_slice(part));
    if matches!(tag, b'Q' | b'S') {
        on_ready();
    }
}
