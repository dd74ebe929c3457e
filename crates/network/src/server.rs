//! The lifecycle of an emulated network: checked, started, waited for, stopped.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plinth_control::{ControlSocket, bind};
use plinth_thread::{poll_until, run_guarded, spawn_exact};

use crate::config::{Config, Node, check_nodes, direction};
use crate::control::{Control, Identity};
use crate::error::NetworkError;
use crate::forwarder::{Shared, forward};
use crate::model::{LinkSettings, Star};
use crate::tun;

/// An emulated network: started once, running until it is stopped or dropped.
#[derive(Debug)]
pub struct NetworkServer {
    config: Config,
    star: Mutex<Option<Star>>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    shared: Arc<Shared>,
    socket: ControlSocket,
    ended: Receiver<Result<(), String>>,
}

impl NetworkServer {
    /// Checks the configuration. Touches nothing.
    ///
    /// # Errors
    /// A value that makes no sense.
    pub fn new(config: Config) -> Result<Self, NetworkError> {
        check_nodes(&config.nodes)?;
        let mut star = Star::new(
            config.nodes.iter().map(|node| node.address).collect(),
            config.seed,
            |_, _| LinkSettings::default(),
        );
        for link in &config.links {
            let (from, to) = direction(&config.nodes, &link.from, &link.to)?;
            link.settings
                .check()
                .map_err(|source| NetworkError::Settings {
                    from: link.from.clone(),
                    to: link.to.clone(),
                    source,
                })?;
            star.link_mut(from, to).set(link.settings);
        }
        Ok(Self {
            config,
            star: Mutex::new(Some(star)),
            running: Mutex::new(None),
        })
    }

    /// Attaches to the devices, forwards packets, and listens. May be called once.
    ///
    /// # Errors
    /// What could not be opened or started. Nothing runs or listens then.
    pub fn start(&self) -> Result<(), NetworkError> {
        let started_again = || NetworkError::Forward("it was started before".to_owned());
        let star = lock(&self.star).take().ok_or_else(started_again)?;
        let attach = |node: &Node| tun::attach(&node.namespace, &node.device);
        let devices: Vec<OwnedFd> = self
            .config
            .nodes
            .iter()
            .map(attach)
            .collect::<Result<_, _>>()?;
        let control = &self.config.control;
        let listener = bind(control)?;
        let failed = || NetworkError::io("serve", control);
        let shared = Shared::new(star).map_err(failed())?;
        let state = Control {
            shared: Arc::clone(&shared),
            identity: Identity {
                pid: std::process::id(),
                label: self.config.label.clone(),
                control: control.clone(),
                seed: self.config.seed,
                nodes: self.config.nodes.clone(),
            },
        };
        let mut socket =
            ControlSocket::start(listener, control.clone(), move |line| state.answer(line))
                .map_err(failed())?;
        let (end, ended) = mpsc::sync_channel(1);
        let forwarded = Arc::clone(&shared);
        let work = move || {
            let result = run_guarded(|| forward(&forwarded, &devices));
            let _ = end.send(result); // nobody waits any more
        };
        if let Err(error) = spawn_exact("network-forward", work) {
            socket.close();
            return Err(failed()(error));
        }
        *lock(&self.running) = Some(Running {
            shared,
            socket,
            ended,
        });
        Ok(())
    }

    /// Waits until the network has ended, for at most `timeout` and while `keep_waiting` returns true. Returns whether it has,
    /// which it does only when it was stopped.
    ///
    /// # Errors
    /// The error that ended it.
    pub fn wait(
        &self,
        timeout: Duration,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<bool, NetworkError> {
        let mut running = lock(&self.running);
        let Some(Running { ended, .. }) = running.as_mut() else {
            return Ok(true);
        };
        let mut result = Ok(());
        let has_ended = poll_until(timeout, keep_waiting, |interval| {
            match ended.recv_timeout(interval) {
                Err(RecvTimeoutError::Timeout) => return false,
                Ok(Err(error)) => result = Err(NetworkError::Forward(error)),
                Ok(Ok(())) | Err(RecvTimeoutError::Disconnected) => {}
            }
            true
        });
        result.map(|()| has_ended)
    }

    /// Stops it: packets in flight are lost, and the nodes no longer reach each other.
    pub fn stop(&self) {
        let Some(mut running) = lock(&self.running).take() else {
            return;
        };
        running.socket.close();
        if running.shared.stop().is_ok() {
            let _ = running.ended.recv(); // it may have ended already
        }
    }
}

impl Drop for NetworkServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
