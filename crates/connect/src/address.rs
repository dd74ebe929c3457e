//! Addresses of servers.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::net::SocketAddrUnix;

/// An address to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Path of a Unix socket; after `@`, a name in the abstract name space.
    Unix(PathBuf),
    /// Address and port.
    Tcp(SocketAddr),
}

impl Address {
    /// The address of a Unix socket, as the system takes it.
    pub(crate) fn unix(path: &std::path::Path) -> rustix::io::Result<SocketAddrUnix> {
        match path.as_os_str().as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddrUnix::new_abstract_name(name),
            None => SocketAddrUnix::new(path),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp(address) => write!(f, "{address}"),
        }
    }
}
