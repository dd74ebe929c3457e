//! From hosts to addresses.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use crate::address::Address;
use crate::error::ConnectError;
use crate::host::Host;

/// Longest path of a Unix socket on Linux (`sun_path` less its zero byte).
const LONGEST_SOCKET_PATH: usize = 107;

/// The places behind a host, in the order to try them. A host name is looked up: ask once, not once a connection.
pub(crate) fn resolve(host: &Host) -> Result<Vec<Address>, ConnectError> {
    if let Some(path) = host.unix_socket() {
        let bytes = path.as_os_str().len();
        if bytes > LONGEST_SOCKET_PATH {
            return Err(ConnectError::SocketPath {
                path,
                bytes,
                longest: LONGEST_SOCKET_PATH,
            });
        }
        return Ok(vec![Address::Unix(path)]);
    }
    if let Some(hostaddr) = &host.hostaddr {
        let address: IpAddr = hostaddr
            .parse()
            .map_err(|source| ConnectError::NumericAddress {
                hostaddr: hostaddr.clone(),
                source,
            })?;
        return Ok(vec![Address::Tcp(SocketAddr::new(address, host.port))]);
    }
    (host.host.as_str(), host.port)
        .to_socket_addrs()
        .map(|addresses| addresses.map(Address::Tcp).collect())
        .map_err(|source| ConnectError::Resolve {
            host: host.host.clone(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(host: &str, hostaddr: Option<&str>) -> Host {
        Host {
            host: host.to_owned(),
            port: 5433,
            hostaddr: hostaddr.map(str::to_owned),
            password: None,
        }
    }

    #[test]
    fn hosts_become_addresses() {
        let unix = |path: &str| Address::Unix(path.into());
        let tcp = |address: &str| Address::Tcp(address.parse().unwrap());
        let cases = [
            (host("/run/pg", None), unix("/run/pg/.s.PGSQL.5433")),
            (host("@pg", None), unix("@pg/.s.PGSQL.5433")),
            (host("127.0.0.1", None), tcp("127.0.0.1:5433")),
            (host("::1", None), tcp("[::1]:5433")),
            (host("no.such.host.invalid", Some("::1")), tcp("[::1]:5433")),
            (host("/run/pg", Some("127.0.0.2")), tcp("127.0.0.2:5433")),
        ];
        for (host, address) in cases {
            assert_eq!(resolve(&host).unwrap(), [address]);
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("/{}", "d".repeat(100));
        for (host, words) in [
            (host(&long, None), "115 bytes"),
            (host("", Some("localhost")), "\"localhost\""),
        ] {
            let error = resolve(&host).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
