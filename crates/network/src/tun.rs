//! TUN devices, whose packets a program reads and writes (Documentation/networking/tuntap.rst of Linux).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::error::NetworkError;
use crate::namespace::within;

const CLONE_DEVICE: &str = "/dev/net/tun";

/// Attaches to the device `name` of a network namespace. What is read from it is what the namespace sends.
pub(crate) fn attach(namespace: &Path, name: &str) -> Result<OwnedFd, NetworkError> {
    let device = name.to_owned();
    within(namespace, move || {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let tun = rustix::fs::open(CLONE_DEVICE, flags, Mode::empty())
            .map_err(|errno| NetworkError::io("open", CLONE_DEVICE)(errno.into()))?;
        name_device(&tun, &device).map_err(NetworkError::io("attach to the TUN device", device))?;
        Ok(tun)
    })
}

/// The ioctl TUNSETIFF: packets of layer 3, without a header before them.
fn name_device(tun: &OwnedFd, name: &str) -> io::Result<()> {
    let mut ifr_name: [libc::c_char; libc::IFNAMSIZ] = [0; libc::IFNAMSIZ];
    for (into, byte) in ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *into = byte as libc::c_char;
    }
    let request = libc::ifreq {
        ifr_name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_flags: (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short,
        },
    };
    #[allow(
        unsafe_code,
        reason = "no safe binding; a plain call with a live struct of the type that it takes"
    )]
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw const request) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
