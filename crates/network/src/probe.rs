//! Round trips between network namespaces, as ping(8) measures them: the kernel of the other side answers at once, so that no
//! other process takes part.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

use plinth_thread::monotonic_ns;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, recv, sendto,
    socket_with,
};

use crate::error::NetworkError;
use crate::namespace::within;

/// An identifier of our own in the header: every process has one in its own namespace.
const IDENTIFIER: u16 = 0x504C;
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const HEADER_BYTES: usize = 8;
/// As ping(8) sends by default.
const PAYLOAD_BYTES: usize = 56;

/// How to measure.
#[derive(Debug, Clone, Copy)]
pub struct Pings {
    /// The number of round trips.
    pub count: u16,
    /// The time between one reply and the next request.
    pub pause: Duration,
    /// The time after which a reply counts as lost.
    pub timeout: Duration,
}

/// Measures round trips from a network namespace to an address in another: nanoseconds, or none for what was lost.
///
/// # Errors
/// That no packets can be sent.
pub fn round_trips(
    namespace: &Path,
    to: Ipv4Addr,
    pings: Pings,
) -> Result<Vec<Option<u64>>, NetworkError> {
    let place = namespace.to_path_buf();
    within(namespace, move || {
        // Measures sooner after a reply has come; without the right to, as soon as the scheduler lets it.
        let _ = plinth_thread::run_at_once();
        measure(to, pings).map_err(NetworkError::io("send packets in", place))
    })
}

fn measure(to: Ipv4Addr, pings: Pings) -> io::Result<Vec<Option<u64>>> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(ipproto::ICMP),
    )?;
    let destination = SocketAddrV4::new(to, 0);
    let mut round_trips = Vec::with_capacity(usize::from(pings.count));
    for sequence in 0..pings.count {
        let began_ns = monotonic_ns();
        sendto(
            &socket,
            &request(sequence),
            SendFlags::empty(),
            &destination,
        )?;
        let deadline_ns = began_ns + pings.timeout.as_nanos() as u64;
        round_trips.push(loop {
            let left = Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()));
            if left < Duration::from_micros(1) {
                break None;
            }
            set_socket_timeout(&socket, Timeout::Recv, Some(left))?;
            let mut packet = [0; 256];
            match recv(&socket, &mut packet, RecvFlags::empty()) {
                Ok((bytes, _)) if is_reply(&packet[..bytes.min(256)], sequence) => {
                    break Some(monotonic_ns() - began_ns);
                }
                Ok(_) | Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        });
        std::thread::sleep(pings.pause);
    }
    Ok(round_trips)
}

/// An echo request (RFC 792).
fn request(sequence: u16) -> [u8; HEADER_BYTES + PAYLOAD_BYTES] {
    let mut packet = [0; HEADER_BYTES + PAYLOAD_BYTES];
    packet[0] = ECHO_REQUEST;
    packet[4..6].copy_from_slice(&IDENTIFIER.to_be_bytes());
    packet[6..8].copy_from_slice(&sequence.to_be_bytes());
    let checksum = checksum(&packet);
    packet[2..4].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// Whether a packet of IPv4 is the reply to request `sequence`.
fn is_reply(packet: &[u8], sequence: u16) -> bool {
    let header_bytes = packet
        .first()
        .map_or(0, |first| usize::from(first & 0xF) * 4);
    packet.get(header_bytes..).is_some_and(|icmp| {
        icmp.len() >= HEADER_BYTES
            && icmp[0] == ECHO_REPLY
            && icmp[4..6] == IDENTIFIER.to_be_bytes()
            && icmp[6..8] == sequence.to_be_bytes()
    })
}

/// The Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(packet: &[u8]) -> u16 {
    let words = packet
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_valid_and_only_its_own_reply_counts() {
        let request = request(7);
        assert_eq!(checksum(&request), 0); // of a packet whose checksum is right
        let mut reply = vec![0; 20];
        reply[0] = 0x45;
        reply.extend(request);
        assert!(!is_reply(&reply, 7));
        reply[20] = ECHO_REPLY;
        assert!(is_reply(&reply, 7));
        assert!(!is_reply(&reply, 8));
        assert!(!is_reply(&reply[..24], 7));
        assert!(!is_reply(&[], 7));
    }
}
