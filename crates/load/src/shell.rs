//! `\shell` and `\setshell`: a command of the shell runs concurrently with the thread, which continues with its other clients.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use mio::Registry;
use plinth_script::{SHELL_OUTPUT_BYTES, lossless};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::config::ShellUser;
use crate::readiness;

const SHELL: &str = "/bin/sh";

/// A shell's events carry this, and the number of its client.
const TOKENS: usize = 1 << 32;

/// The client whose shell an event is about, if it is about one.
#[inline]
pub(crate) fn client_of(token: usize, clients: usize) -> Option<usize> {
    token.checked_sub(TOKENS).filter(|&index| index < clients)
}

/// A shell with our own rights.
fn of_our_own() -> Command {
    let mut shell = Command::new(SHELL);
    shell.process_group(0);
    shell
}

fn os(text: &str) -> OsString {
    OsString::from_vec(lossless::to_bytes(text).into_owned())
}

/// A shell of another user. It has a session of its own, since processes that share our terminal could type into it.
fn of(user: &ShellUser) -> Command {
    let mut shell = Command::new("/usr/bin/setsid");
    shell
        .arg(SHELL)
        .uid(user.uid)
        .gid(user.gid)
        .env_clear()
        .envs(
            user.environment
                .iter()
                .map(|(name, text)| (os(name), os(text))),
        )
        .current_dir("/");
    if user.discards_output {
        shell.stdout(Stdio::null()).stderr(Stdio::null());
    }
    shell
}

/// A shell that runs. When it is dropped, it and all that it started are killed.
#[derive(Debug)]
pub(crate) struct Shell {
    child: Child,
    group: Pid,
    /// Ready when the shell has ended.
    _end: OwnedFd,
    /// Where its output is read, as long as it is wanted.
    stdout: Option<ChildStdout>,
    output: Vec<u8>,
    status: Option<ExitStatus>,
}

impl Shell {
    /// Starts `command` for a client, as `user` if there is one. With `is_read`, the beginning of its output is kept;
    /// otherwise it goes where this program's goes. It reads nothing.
    pub(crate) fn start(
        command: &[u8],
        is_read: bool,
        user: Option<&ShellUser>,
        client: usize,
        registry: &Registry,
    ) -> io::Result<Self> {
        let mut shell = user.map_or_else(of_our_own, of);
        let mut child = shell
            .arg("-c")
            .arg(OsStr::from_bytes(command))
            .stdin(Stdio::null());
        if is_read {
            child = child.stdout(Stdio::piped());
        }
        let mut child = child.spawn()?;
        let group = Pid::from_child(&child);
        let end = pidfd_open(group, PidfdFlags::empty());
        let stdout = child.stdout.take();
        let mut shell = Self {
            child,
            group,
            _end: end?,
            stdout: None,
            output: Vec::new(),
            status: None,
        };
        readiness::watch(
            registry,
            shell._end.as_fd(),
            TOKENS + client,
            readiness::READ,
        )?;
        if let Some(stdout) = stdout {
            rustix::io::ioctl_fionbio(&stdout, true)?;
            readiness::watch(registry, stdout.as_fd(), TOKENS + client, readiness::READ)?;
            shell.stdout = Some(stdout);
        }
        Ok(shell)
    }

    /// Reads the output that there is. Returns the shell's exit status, if it has ended, and the beginning of its output.
    pub(crate) fn poll(&mut self) -> io::Result<Option<(ExitStatus, &[u8])>> {
        self.read()?;
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        match self.status {
            Some(status) if self.stdout.is_none() => Ok(Some((status, &self.output))),
            _ => Ok(None),
        }
    }

    /// Reads up to the end of the first line. A shell that prints more gets SIGPIPE.
    fn read(&mut self) -> io::Result<()> {
        let mut piece = [0; SHELL_OUTPUT_BYTES];
        while let Some(stdout) = &mut self.stdout {
            let wanted = SHELL_OUTPUT_BYTES - self.output.len();
            let read = match stdout.read(&mut piece[..wanted]) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.output.extend_from_slice(&piece[..read]);
            if read == 0 || read == wanted || self.output.contains(&b'\n') {
                self.stdout = None;
            }
        }
        Ok(())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if self.status.is_none() {
            // It may have ended in the meantime; it has not been waited for, so its number is still its own.
            // One of another user that is only just started has no group of its own yet.
            let _ = kill_process_group(self.group, Signal::KILL);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
