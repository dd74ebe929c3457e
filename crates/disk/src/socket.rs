//! The control socket: lines in, lines out, a thread for each client.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crate::control::refusal;
use crate::error::DiskError;
use crate::threads;

/// A longer line is not a command, but a mistake.
const MAX_LINE_BYTES: u64 = 64 * 1024;
const MAX_REST_BYTES: u64 = 16 << 20;
const MAX_CLIENTS: usize = 32;
/// The length of `sockaddr_un.sun_path`, less its end.
const MAX_PATH_BYTES: usize = 107;

/// A socket that replies until it is closed, which also removes its file.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    path: PathBuf,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Binds a listener that only its owner may connect to, replacing the socket file of a daemon that has ended.
pub(crate) fn bind(path: &Path) -> Result<UnixListener, DiskError> {
    let length = path.as_os_str().len();
    if length > MAX_PATH_BYTES {
        return Err(DiskError::SocketPath(length));
    }
    let is_socket = path
        .symlink_metadata()
        .is_ok_and(|found| found.file_type().is_socket());
    if is_socket {
        if UnixStream::connect(path).is_ok() {
            return Err(DiskError::SocketTaken(path.into()));
        }
        std::fs::remove_file(path).map_err(DiskError::io("replace the socket", path))?;
    }
    let listener = UnixListener::bind(path).map_err(DiskError::io("bind the socket", path))?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))
        .map_err(DiskError::io("close the socket to others", path))?;
    Ok(listener)
}

impl ControlSocket {
    /// Replies to each line of a client with the result of `answer`.
    pub(crate) fn start(
        listener: UnixListener,
        path: PathBuf,
        answer: impl Fn(&[u8]) -> String + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let closing = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&closing);
        let answer = Arc::new(answer);
        let clients = Arc::new(AtomicUsize::new(0));
        let listen = move || {
            while let Ok((stream, _)) = listener.accept() {
                if closed.load(Ordering::Acquire) {
                    return;
                }
                let answer = Arc::clone(&answer);
                let slot = ClientSlot::take(&clients);
                let serve = move || {
                    // A client that disconnects within a line sent no command, and gets no reply.
                    let _ = serve_client(&stream, slot.is_some(), answer.as_ref());
                };
                // Without a thread the connection is closed, which tells the client that it is not served.
                let _ = threads::spawn("disk-client", serve);
            }
        };
        Ok(Self {
            path,
            closing,
            thread: Some(threads::spawn("disk-control", listen)?),
        })
    }

    pub(crate) fn close(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.closing.store(true, Ordering::Release);
        // Wakes the accepting thread. If that has ended already, the connection is refused.
        if UnixStream::connect(&self.path).is_ok() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path); // it may be removed already
    }
}

/// The right to be served: at most [`MAX_CLIENTS`] at a time.
struct ClientSlot(Arc<AtomicUsize>);

impl ClientSlot {
    fn take(clients: &Arc<AtomicUsize>) -> Option<Self> {
        let slot = Self(Arc::clone(clients));
        (slot.0.fetch_add(1, Ordering::AcqRel) < MAX_CLIENTS).then_some(slot)
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn serve_client(
    stream: &UnixStream,
    has_slot: bool,
    answer: &dyn Fn(&[u8]) -> String,
) -> io::Result<()> {
    let say = |text: String| {
        let mut stream = stream;
        stream.write_all((text + "\n").as_bytes())
    };
    if !has_slot {
        return say(refusal(&format!(
            "more than {MAX_CLIENTS} clients at a time"
        )));
    }
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        reader
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)?;
        match line.last() {
            None => return Ok(()),
            Some(b'\n') => say(answer(&line))?,
            Some(_) if line.len() as u64 == MAX_LINE_BYTES => {
                say(refusal(&format!(
                    "a line of more than {MAX_LINE_BYTES} bytes"
                )))?;
                // Closed with something unread, the connection would be reset, and the answer lost.
                let rest = &mut reader.by_ref().take(MAX_REST_BYTES);
                return io::copy(rest, &mut io::sink()).map(drop);
            }
            Some(_) => return say(refusal("the line has no end")),
        }
    }
}
