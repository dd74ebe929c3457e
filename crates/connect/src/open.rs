//! Socket and login, blocking, before a deadline.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use plinth_wire::{Login, Session, Startup};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::Target;
use crate::address::Address;
use crate::error::ConnectError;

/// A session, and the blocking socket it runs on.
#[derive(Debug)]
pub struct Opened {
    /// Close-on-exec, without timeouts; `TCP_NODELAY` and keepalives on, as libpq sets them.
    pub socket: OwnedFd,
    /// What the login gave.
    pub session: Session,
}

/// Opens a session at the first of `addresses` that takes the connection.
///
/// # Errors
/// No session within `timeout`, the reason of the last address tried.
pub fn open(
    target: &Target,
    addresses: &[Address],
    timeout: Duration,
) -> Result<Opened, ConnectError> {
    let deadline = Instant::now() + timeout;
    let mut refusal = None;
    for address in addresses {
        let attempt = Attempt {
            address,
            timeout,
            deadline,
        };
        match attempt.socket() {
            Ok(socket) => return attempt.log_in(target, socket),
            Err(error) => refusal = Some(error),
        }
    }
    Err(refusal.unwrap_or_else(|| ConnectError::Resolve {
        host: target.host.clone(),
        source: io::Error::new(io::ErrorKind::NotFound, "it has no address"),
    }))
}

struct Attempt<'a> {
    address: &'a Address,
    timeout: Duration,
    deadline: Instant,
}

impl Attempt<'_> {
    fn socket(&self) -> Result<OwnedFd, ConnectError> {
        self.connect().map_err(|errno| match errno {
            // How connect(2) says that the send timeout is over: on Unix sockets, and on TCP.
            Errno::AGAIN | Errno::INPROGRESS => self.timed_out(),
            errno => ConnectError::Refused {
                address: self.address.clone(),
                source: errno.into(),
            },
        })
    }

    fn connect(&self) -> rustix::io::Result<OwnedFd> {
        let family = match self.address {
            Address::Unix(_) => AddressFamily::UNIX,
            Address::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
            Address::Tcp(_) => AddressFamily::INET6,
        };
        let socket =
            rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let left = self.left().ok_or(Errno::AGAIN)?;
        sockopt::set_socket_timeout(&socket, Timeout::Send, Some(left))?;
        match self.address {
            Address::Unix(path) => rustix::net::connect(&socket, &Address::unix(path)?)?,
            Address::Tcp(address) => {
                rustix::net::connect(&socket, address)?;
                sockopt::set_tcp_nodelay(&socket, true)?;
                sockopt::set_socket_keepalive(&socket, true)?;
            }
        }
        Ok(socket)
    }

    fn log_in(&self, target: &Target, socket: OwnedFd) -> Result<Opened, ConnectError> {
        let login_error = |source| ConnectError::Login {
            address: self.address.clone(),
            source,
        };
        let parameters = target.parameters();
        let login = Login {
            user: &target.user,
            password: target.password.as_deref(),
            parameters: &parameters,
        };
        let mut out = Vec::new();
        let mut startup = Startup::new(&login, &mut out).map_err(login_error)?;
        let mut buffer = [0; 8192];
        loop {
            self.send(&socket, &out)?;
            out.clear();
            let received = self.receive(&socket, &mut buffer)?;
            if let Some(session) = startup
                .receive(&buffer[..received], &mut out)
                .map_err(login_error)?
            {
                for direction in [Timeout::Send, Timeout::Recv] {
                    sockopt::set_socket_timeout(&socket, direction, None)
                        .map_err(|errno| self.lost(errno))?;
                }
                return Ok(Opened { socket, session });
            }
        }
    }

    fn send(&self, socket: &OwnedFd, mut bytes: &[u8]) -> Result<(), ConnectError> {
        while !bytes.is_empty() {
            let left = self.left().ok_or_else(|| self.timed_out())?;
            let sent = sockopt::set_socket_timeout(socket, Timeout::Send, Some(left))
                .and_then(|()| {
                    rustix::io::retry_on_intr(|| {
                        rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)
                    })
                })
                .map_err(|errno| self.lost(errno))?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    fn receive(&self, socket: &OwnedFd, buffer: &mut [u8]) -> Result<usize, ConnectError> {
        let left = self.left().ok_or_else(|| self.timed_out())?;
        let (received, _) = sockopt::set_socket_timeout(socket, Timeout::Recv, Some(left))
            .and_then(|()| {
                rustix::io::retry_on_intr(|| {
                    rustix::net::recv(socket, &mut *buffer, RecvFlags::empty())
                })
            })
            .map_err(|errno| self.lost(errno))?;
        if received == 0 {
            return Err(self.lost(Errno::CONNRESET));
        }
        Ok(received)
    }

    /// Time left, if any; the kernel takes a timeout of less than a microsecond for none at all.
    fn left(&self) -> Option<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        (left > Duration::from_micros(1)).then_some(left)
    }

    fn lost(&self, errno: Errno) -> ConnectError {
        match errno {
            Errno::AGAIN => self.timed_out(),
            errno => ConnectError::Lost {
                address: self.address.clone(),
                source: errno.into(),
            },
        }
    }

    fn timed_out(&self) -> ConnectError {
        ConnectError::Timeout {
            address: self.address.clone(),
            timeout: self.timeout,
        }
    }
}
