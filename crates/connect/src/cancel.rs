//! Asking a server to cancel what a session is doing.

use std::io::{self, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use plinth_wire::Session;

use crate::address::Address;

/// `CancelRequest`'s code, where a startup message has the protocol's version.
const CANCEL_REQUEST: i32 = 80_877_102;

/// Cancels a session's statement from outside of the session.
#[derive(Debug, Clone)]
pub struct Canceller {
    address: Address,
    request: Box<[u8]>,
}

impl Canceller {
    /// For a session opened at `address`.
    #[must_use]
    pub fn new(address: Address, session: &Session) -> Self {
        let length = 12 + session.secret_key.len() as i32;
        let request = [
            &length.to_be_bytes(),
            &CANCEL_REQUEST.to_be_bytes(),
            &session.process_id.to_be_bytes(),
            session.secret_key.as_slice(),
        ];
        Self {
            address,
            request: request.concat().into(),
        }
    }

    /// Sends the request over a connection of its own, unencrypted as libpq's `PQcancel` does. The server does not
    /// answer; whether there was something to cancel is its affair.
    ///
    /// # Errors
    /// The request could not be sent within `timeout`.
    pub fn send(&self, timeout: Duration) -> io::Result<()> {
        match &self.address {
            Address::Unix(path) => {
                let mut socket = match path.as_os_str().as_bytes().strip_prefix(b"@") {
                    Some(name) => UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?,
                    None => UnixStream::connect(path)?,
                };
                socket.set_write_timeout(Some(timeout))?;
                socket.write_all(&self.request)
            }
            Address::Tcp(address) => {
                let mut socket = TcpStream::connect_timeout(address, timeout)?;
                socket.set_write_timeout(Some(timeout))?;
                socket.write_all(&self.request)
            }
        }
    }
}
