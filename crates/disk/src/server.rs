//! The lifecycle of a served disk: checked, started, waited for, stopped.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fuser::{MountOption, Session};
use plinth_control::{ControlSocket, bind};
use plinth_thread::spawn_exact;
use rustix::mount::{UnmountFlags, unmount};
use serde::Deserialize;

use crate::backing::Backing;
use crate::control::{Control, Identity, ImageState};
use crate::disk::Disk;
use crate::error::DiskError;
use crate::filesystem::DiskFilesystem;
use crate::instance::{Instance, InstanceConfig};
use crate::model::{EioFault, Lie, Overrides, PROFILES, Physics, profile};
use crate::recording::{ImageConfig, Recording};
use crate::replies::Replies;

/// Threads that read requests: enough to work while another waits for the host's disk.
const READERS: usize = 3;

/// The interval at which a wait checks whether to continue.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The disk to serve, and where.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Name of the profile.
    pub profile: String,
    /// Physics that differ from the profile's.
    #[serde(default)]
    pub physics: Overrides,
    /// A multiple of 4096.
    pub size_bytes: u64,
    /// The sparse file of the data; created when it does not exist.
    pub backing: PathBuf,
    /// The directory to mount on.
    pub mount: PathBuf,
    /// Path of the control socket.
    pub control: PathBuf,
    /// The source of the mount in the mount table.
    pub label: String,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The lie about flushes.
    #[serde(default)]
    pub lie: Option<Lie>,
    /// Faults armed from the start.
    #[serde(default)]
    pub faults: Vec<EioFault>,
    /// The content to begin with; the backing file is then its overlay.
    #[serde(default)]
    pub image: Option<ImageConfig>,
    /// The limit that it shares with other volumes.
    #[serde(default)]
    pub instance: Option<InstanceConfig>,
}

#[derive(Debug, Default)]
struct SessionEnd {
    ended: Mutex<Option<io::Result<()>>>,
    changed: Condvar,
}

/// A disk that is served, or will be.
#[derive(Debug)]
pub struct DiskServer {
    config: Config,
    physics: Physics,
    running: Mutex<Option<Running>>,
    end: Arc<SessionEnd>,
}

#[derive(Debug)]
struct Running {
    replies: Arc<Replies>,
    socket: ControlSocket,
}

impl Running {
    fn close(&mut self) {
        self.socket.close();
        self.replies.close();
    }
}

impl DiskServer {
    /// Checks what can be checked without touching anything.
    ///
    /// # Errors
    /// The first value that is wrong.
    pub fn new(config: Config) -> Result<Self, DiskError> {
        let Some(found) = profile(&config.profile) else {
            let known: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
            return Err(DiskError::UnknownProfile(config.profile, known.join(", ")));
        };
        let physics = config.physics.apply(&found.physics)?;
        for fault in &config.faults {
            fault.check()?;
        }
        Ok(Self {
            config,
            physics,
            running: Mutex::new(None),
            end: Arc::default(),
        })
    }

    /// Opens or makes the backing file, mounts, and listens. When it returns, both answer. May be called once.
    ///
    /// # Errors
    /// What could not be opened, mounted or started. Nothing is left mounted or listening then; a new backing file stays.
    pub fn start(&self) -> Result<(), DiskError> {
        let config = &self.config;
        let (backing, image) = self.open_backing()?;
        let disk = Disk::new(backing, self.physics.clone(), config.seed).map_err(DiskError::io(
            "look through the backing file",
            &config.backing,
        ))?;
        let instance = match &config.instance {
            None => None,
            Some(limits) => Some(Instance::open(limits).map_err(DiskError::io(
                "open the limits of the instance",
                &limits.file,
            ))?),
        };
        let disk = disk.of_instance(instance);
        disk.set_lie(config.lie)?;
        for fault in &config.faults {
            disk.arm(fault.clone())?;
        }
        let listener = bind(&config.control)?;
        let disk = Arc::new(disk);
        let (replies, _) = Replies::start(Arc::clone(&disk)).map_err(DiskError::Serve)?;
        let mut running = Running {
            socket: self.listen(listener, &disk, &replies, image)?,
            replies,
        };
        let end = Arc::clone(&self.end);
        let served = self.mount(&disk, &running.replies).and_then(|session| {
            spawn_exact("disk-session", move || end.set(session.run())).map_err(DiskError::Serve)
        });
        if let Err(error) = served {
            running.close();
            return Err(error);
        }
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        Ok(())
    }

    /// The backing file, or the image.
    fn open_backing(&self) -> Result<(Backing, Option<ImageState>), DiskError> {
        let Config {
            backing,
            size_bytes,
            ..
        } = &self.config;
        let Some(config) = &self.config.image else {
            return Ok((Backing::open(backing, *size_bytes)?, None));
        };
        let recording = Recording::open(&config.recording)?;
        if recording.size_bytes() != *size_bytes {
            return Err(DiskError::RecordingSize {
                folder: config.recording.clone(),
                recorded: recording.size_bytes(),
                disk: *size_bytes,
            });
        }
        let image = recording.image(config)?;
        let state = ImageState {
            config: config.clone(),
            cut: image.report,
        };
        Ok((Backing::of_image(backing, *size_bytes, image)?, Some(state)))
    }

    fn mount(
        &self,
        disk: &Arc<Disk>,
        replies: &Arc<Replies>,
    ) -> Result<Session<DiskFilesystem>, DiskError> {
        let filesystem = DiskFilesystem {
            disk: Arc::clone(disk),
            replies: Arc::clone(replies),
        };
        let mut options = fuser::Config::default();
        options.mount_options = vec![
            MountOption::FSName(self.config.label.clone()),
            MountOption::Subtype("plinth-disk".to_owned()),
            MountOption::NoSuid,
            MountOption::NoDev,
        ];
        options.n_threads = Some(READERS);
        Session::new(filesystem, &self.config.mount, &options)
            .map_err(DiskError::io("mount on", &self.config.mount))
    }

    fn listen(
        &self,
        listener: std::os::unix::net::UnixListener,
        disk: &Arc<Disk>,
        replies: &Arc<Replies>,
        image: Option<ImageState>,
    ) -> Result<ControlSocket, DiskError> {
        let (disk, replies) = (Arc::clone(disk), Arc::clone(replies));
        let config = &self.config;
        let identity = Identity {
            pid: std::process::id(),
            label: config.label.clone(),
            profile: config.profile.clone(),
            size_bytes: config.size_bytes,
            backing: config.backing.clone(),
            mount: config.mount.clone(),
            control: config.control.clone(),
            image,
        };
        let answer = move |line: &[u8]| {
            let control = Control {
                disk: &disk,
                replies: &replies,
                identity: &identity,
            };
            control.answer(line)
        };
        ControlSocket::start(listener, config.control.clone(), answer).map_err(DiskError::Serve)
    }

    /// Waits until the disk is unmounted, for at most `timeout` and while `keep_waiting` returns true. Returns whether it
    /// is unmounted.
    ///
    /// # Errors
    /// The error that ended the FUSE session.
    pub fn wait(
        &self,
        timeout: Duration,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<bool, DiskError> {
        let began = Instant::now();
        loop {
            if let Some(result) = self
                .end
                .wait(POLL_INTERVAL.min(timeout.saturating_sub(began.elapsed())))
            {
                self.shut_down();
                return result.map(|()| true).map_err(DiskError::Serve);
            }
            if began.elapsed() >= timeout || !keep_waiting() {
                return Ok(false);
            }
        }
    }

    /// Unmounts the disk. Returns false when it is in use: it is then detached from the directory tree, and its users get
    /// I/O errors once this process has ended, as when a disk is pulled out.
    ///
    /// # Errors
    /// The reason why it cannot be unmounted at all.
    pub fn stop(&self) -> Result<bool, DiskError> {
        let path = &self.config.mount;
        let failed = |errno: rustix::io::Errno| DiskError::io("unmount", path)(errno.into());
        if self.end.wait(Duration::ZERO).is_some() {
            return Ok(true);
        }
        match unmount(path.as_path(), UnmountFlags::NOFOLLOW) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::BUSY) => {
                unmount(
                    path.as_path(),
                    UnmountFlags::DETACH | UnmountFlags::NOFOLLOW,
                )
                .map_err(failed)?;
                self.shut_down();
                Ok(false)
            }
            Err(errno) => Err(failed(errno)),
        }
    }

    fn shut_down(&self) {
        let running = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut running) = running {
            running.close();
        }
    }
}

impl Drop for DiskServer {
    fn drop(&mut self) {
        self.shut_down();
    }
}

impl SessionEnd {
    fn set(&self, result: io::Result<()>) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.changed.notify_all();
    }

    fn wait(&self, timeout: Duration) -> Option<io::Result<()>> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let (ended, _) = self
            .changed
            .wait_timeout_while(ended, timeout, |ended| ended.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        ended.as_ref().map(|result| match result {
            Ok(()) => Ok(()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        })
    }
}
