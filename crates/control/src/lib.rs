//! The control socket of a daemon: commands in, replies out, each one JSON object on a line; a thread for each client.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use plinth_thread::spawn_exact;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;

/// A longer line is not a command, but a mistake.
const MAX_LINE_BYTES: u64 = 64 * 1024;
const MAX_REST_BYTES: u64 = 16 << 20;
const MAX_CLIENTS: usize = 32;
/// The length of `sockaddr_un.sun_path`, less its end.
const MAX_PATH_BYTES: usize = 107;

/// The reason why a daemon cannot listen.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum BindError {
    #[error("the control socket's path has {0} bytes; a Unix socket's may have 107")]
    Length(usize),
    #[error("something answers on the control socket {0} already")]
    Taken(PathBuf),
    #[error("cannot {doing} {path}: {source}")]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl BindError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }

    /// The path that failed, unless it is too long to be one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Length(_) => None,
            Self::Taken(path) | Self::Io { path, .. } => Some(path),
        }
    }

    /// The error of the operating system, if there was one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// Whether another request of the caller could succeed.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Length(_))
    }
}

/// The command on one line.
///
/// # Errors
/// What is wrong with it, for [`refusal`].
pub fn parse<C: DeserializeOwned>(line: &[u8]) -> Result<C, String> {
    let value: Value =
        serde_json::from_slice(line).map_err(|error| format!("not a command: {error}"))?;
    if !value.is_object() {
        return Err("not a command: a JSON object is needed".into());
    }
    serde_json::from_value(value).map_err(|error| format!("not a command: {error}"))
}

/// The reply to a command: what it returned, or why it was refused. `done` holds an object.
#[must_use]
pub fn reply(done: Result<Value, String>) -> String {
    match done {
        Ok(mut done) => {
            done["ok"] = Value::Bool(true);
            done.to_string()
        }
        Err(message) => refusal(&message),
    }
}

fn refusal(message: &str) -> String {
    json!({ "ok": false, "error": message }).to_string()
}

/// A socket that replies until it is closed, which also removes its file.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Binds a listener that only its owner may connect to, replacing the socket file of a daemon that has ended.
///
/// # Errors
/// Why there is no listening there.
pub fn bind(path: &Path) -> Result<UnixListener, BindError> {
    let length = path.as_os_str().len();
    if length > MAX_PATH_BYTES {
        return Err(BindError::Length(length));
    }
    let is_socket = path
        .symlink_metadata()
        .is_ok_and(|found| found.file_type().is_socket());
    if is_socket {
        if UnixStream::connect(path).is_ok() {
            return Err(BindError::Taken(path.into()));
        }
        std::fs::remove_file(path).map_err(BindError::io("replace the socket", path))?;
    }
    let listener = UnixListener::bind(path).map_err(BindError::io("bind the socket", path))?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))
        .map_err(BindError::io("close the socket to others", path))?;
    Ok(listener)
}

impl ControlSocket {
    /// Replies to each line of a client with the result of `answer`, which has no newline.
    ///
    /// # Errors
    /// That no thread could be started.
    pub fn start(
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
                let _ = spawn_exact("control-client", serve);
            }
        };
        Ok(Self {
            path,
            closing,
            thread: Some(spawn_exact("control", listen)?),
        })
    }

    /// Stops listening, and removes the socket's file.
    pub fn close(&mut self) {
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
