//! Sockets that do not block, with libpq's settings.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, Result};
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::address::Address;
use crate::target::Tcp;

/// A socket of the address's family, not connected yet.
pub(crate) fn prepare(address: &Address, tcp: &Tcp) -> Result<OwnedFd> {
    let family = match address {
        Address::Unix(_) => AddressFamily::UNIX,
        Address::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
        Address::Tcp(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    if family != AddressFamily::UNIX {
        sockopt::set_tcp_nodelay(&socket, true)?;
        sockopt::set_socket_keepalive(&socket, tcp.keepalives)?;
        set_probes(&socket, tcp)?;
    }
    Ok(socket)
}

/// Zero selects the system's default, as in libpq.
fn set_probes(socket: &OwnedFd, tcp: &Tcp) -> Result<()> {
    let given = |setting: Option<u32>| setting.filter(|&value| value > 0);
    let seconds = |setting| given(setting).map(|value| Duration::from_secs(value.into()));
    if tcp.keepalives {
        if let Some(idle) = seconds(tcp.keepalives_idle_s) {
            sockopt::set_tcp_keepidle(socket, idle)?;
        }
        if let Some(interval) = seconds(tcp.keepalives_interval_s) {
            sockopt::set_tcp_keepintvl(socket, interval)?;
        }
        if let Some(count) = given(tcp.keepalives_count) {
            sockopt::set_tcp_keepcnt(socket, count)?;
        }
    }
    if let Some(timeout_ms) = given(tcp.tcp_user_timeout_ms) {
        sockopt::set_tcp_user_timeout(socket, timeout_ms)?;
    }
    Ok(())
}

/// Connects, or continues to connect. `INPROGRESS` or `ALREADY` until it is done, and then once `Ok`, or why not;
/// `AGAIN` when a Unix socket's queue is full.
pub(crate) fn connect(socket: impl AsFd, address: &Address) -> Result<()> {
    let connected = match address {
        Address::Unix(path) => rustix::net::connect(socket, &Address::unix(path)?),
        Address::Tcp(address) => rustix::net::connect(socket, address),
    };
    match connected {
        Err(Errno::ISCONN) => Ok(()),
        outcome => outcome,
    }
}
