//! Where a server listens.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use rustix::net::SocketAddrUnix;

use crate::Target;
use crate::error::ConnectError;

/// Longest path of a Unix socket on Linux (`sun_path` less its zero byte).
const LONGEST_SOCKET_PATH: usize = 107;

/// One place to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Path of a Unix socket.
    Unix(PathBuf),
    /// Address and port.
    Tcp(SocketAddr),
}

impl Address {
    /// The places behind a target's host, in the order to try them. Ask once, not once a connection:
    /// a host name is looked up.
    ///
    /// # Errors
    /// A name that nobody knows, or a socket path that is too long.
    pub fn resolve(target: &Target) -> Result<Vec<Self>, ConnectError> {
        if target.host.starts_with('/') {
            let path = Path::new(&target.host).join(format!(".s.PGSQL.{}", target.port));
            let bytes = path.as_os_str().len();
            if bytes > LONGEST_SOCKET_PATH {
                return Err(ConnectError::SocketPath {
                    path,
                    bytes,
                    longest: LONGEST_SOCKET_PATH,
                });
            }
            return Ok(vec![Self::Unix(path)]);
        }
        (target.host.as_str(), target.port)
            .to_socket_addrs()
            .map(|addresses| addresses.map(Self::Tcp).collect())
            .map_err(|source| ConnectError::Resolve {
                host: target.host.clone(),
                source,
            })
    }

    pub(crate) fn unix(path: &Path) -> rustix::io::Result<SocketAddrUnix> {
        SocketAddrUnix::new(path)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn target(host: &str) -> Target {
        Target {
            host: host.to_owned(),
            port: 5433,
            user: "u".to_owned(),
            database: "d".to_owned(),
            password: None,
            options: None,
            application_name: "plinth".to_owned(),
        }
    }

    #[test]
    fn hosts_become_addresses() {
        let unix = Address::Unix("/run/pg/.s.PGSQL.5433".into());
        assert_eq!(Address::resolve(&target("/run/pg")).unwrap(), [unix]);
        let tcp = Address::Tcp("127.0.0.1:5433".parse().unwrap());
        assert_eq!(Address::resolve(&target("127.0.0.1")).unwrap(), [tcp]);
    }

    #[test]
    fn a_long_socket_path_is_refused_with_its_length() {
        let host = format!("/{}", "d".repeat(100));
        let error = Address::resolve(&target(&host)).unwrap_err().to_string();
        assert!(
            error.contains("115 bytes") && error.contains("107"),
            "{error}"
        );
    }
}
