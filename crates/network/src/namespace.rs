//! Work in another network namespace (network_namespaces(7)).

use std::io;
use std::path::Path;
use std::sync::mpsc;

use plinth_thread::{enter_network_namespace, spawn_exact};

use crate::error::NetworkError;

/// Does `work` in a thread that is in the network namespace of `path`, such as /run/netns/NAME. What it opens there stays there.
pub(crate) fn within<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, NetworkError> + Send + 'static,
) -> Result<T, NetworkError> {
    let (done, result) = mpsc::sync_channel(1);
    let place = path.to_path_buf();
    let enter_and_work = move || {
        let entered = enter_network_namespace(&place)
            .map_err(NetworkError::io("enter the network namespace", place));
        let _ = done.send(entered.and_then(|()| work())); // the receiver waits for it
    };
    let thread = spawn_exact("network-namespace", enter_and_work)
        .map_err(NetworkError::io("start a thread for", path))?;
    let result = result.recv();
    let _ = thread.join(); // a panic leaves no result
    result.unwrap_or_else(|_| {
        let panicked = io::Error::other("its thread panicked");
        Err(NetworkError::io("work in the network namespace", path)(
            panicked,
        ))
    })
}
