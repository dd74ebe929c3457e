//! The commands of the control socket, and the reply to each.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plinth_control::{parse, reply};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::disk::Disk;
use crate::error::DiskError;
use crate::model::{Credits, CutMode, CutReport, EioFault, Lie, Overrides};
use crate::recording::{ImageConfig, Recorder, RecordingStatus};
use crate::replies::Replies;

/// A command: one JSON object on a line.
#[derive(Debug, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
enum Command {
    /// Report the state of the disk.
    Status {},
    /// Change the physics.
    Set { physics: Box<Overrides> },
    /// Make the credits what they are in the beginning, by `credit_level`.
    ResetCredits {},
    /// Arm a fault.
    Fault { fault: EioFault },
    /// Disarm all faults.
    ClearFaults {},
    /// Lie about flushes from now on; null ends the lie.
    Lie { lie: Option<Lie> },
    /// Cut the power.
    PowerCut {
        mode: CutMode,
        #[serde(default)]
        seed: u64,
    },
    /// Restore the power.
    PowerOn {},
    /// Make everything durable, even while the disk lies about flushes.
    FlushNow {},
    /// Record what happens from now on, in a folder.
    RecordStart { folder: PathBuf },
    /// Stop recording.
    RecordStop {},
}

/// The fields that a status begins with.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    pub(crate) label: String,
    pub(crate) profile: String,
    pub(crate) size_bytes: u64,
    pub(crate) backing: PathBuf,
    pub(crate) mount: PathBuf,
    pub(crate) control: PathBuf,
    pub(crate) image: Option<ImageState>,
}

/// The image that is served, and what the cut did that it is of.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ImageState {
    #[serde(flatten)]
    pub(crate) config: ImageConfig,
    pub(crate) cut: CutReport,
}

/// The state that the commands act on.
pub(crate) struct Control<'a> {
    pub(crate) disk: &'a Disk,
    pub(crate) replies: &'a Replies,
    pub(crate) identity: &'a Identity,
}

impl Control<'_> {
    /// The reply to one line, without its newline.
    pub(crate) fn answer(&self, line: &[u8]) -> String {
        reply(parse(line).and_then(|command| self.execute(command)))
    }

    fn execute(&self, command: Command) -> Result<Value, String> {
        let disk = self.disk;
        match command {
            Command::Status {} => Ok(self.status()),
            Command::Set { physics } => {
                let physics = disk
                    .set_physics(&physics)
                    .map_err(|error| error.to_string())?;
                Ok(json!({ "physics": physics }))
            }
            Command::ResetCredits {} => {
                let now_ns = disk.now_ns();
                let mut state = disk.state();
                state.timing.reset_credits(now_ns);
                Ok(json!({ "credits": state.timing.credits(now_ns) }))
            }
            Command::Fault { fault } => {
                disk.arm(fault).map_err(|error| error.to_string())?;
                Ok(json!({ "faults": disk.state().faults.states() }))
            }
            Command::ClearFaults {} => Ok(json!({ "cleared": disk.disarm() })),
            Command::Lie { lie } => {
                disk.set_lie(lie).map_err(|error| error.to_string())?;
                Ok(json!({ "lie": lie }))
            }
            Command::PowerCut { mode, seed } => self.cut(mode, seed),
            Command::PowerOn {} if disk.power_on() => Ok(json!({ "power": "on" })),
            Command::PowerOn {} => Err("the power is on already".into()),
            Command::RecordStart { folder } => self.start_recording(&folder),
            Command::RecordStop {} => {
                let stopped = disk.stop_recording().map_err(|error| error.to_string())?;
                Ok(json!({ "recording": stopped }))
            }
            Command::FlushNow {} => Ok(json!({ "bytes_made_durable": disk.flush_now() })),
        }
    }

    fn cut(&self, mode: CutMode, seed: u64) -> Result<Value, String> {
        let report = self
            .disk
            .cut(mode, seed)
            .map_err(|error| {
                format!("the cut is incomplete: cannot write to the backing file: {error}")
            })?
            .ok_or("the power is off already")?;
        let requests_failed = self.replies.complete_all_now();
        let mut done = json!(report);
        done["requests_failed"] = json!(requests_failed);
        Ok(done)
    }

    fn start_recording(&self, folder: &Path) -> Result<Value, String> {
        let base = self
            .refuse_own_disk(folder)
            .and_then(|()| self.disk.start_recording(folder));
        Ok(json!({ "base": base.map_err(|error| error.to_string())? }))
    }

    /// A recording on the disk that it is of would record itself, and wait for itself.
    fn refuse_own_disk(&self, folder: &Path) -> Result<(), DiskError> {
        let found = folder
            .metadata()
            .map_err(DiskError::io("look at", folder))?
            .dev();
        let (major, minor) = (rustix::fs::major(found), rustix::fs::minor(found));
        let backing = format!("/sys/dev/block/{major}:{minor}/loop/backing_file");
        match std::fs::read_to_string(backing) {
            Ok(path) if Path::new(path.trim_end()).starts_with(&self.identity.mount) => {
                Err(DiskError::RecordingOnDisk(folder.into()))
            }
            _ => Ok(()), // no loop device, or one of another file
        }
    }

    fn status(&self) -> Value {
        #[derive(Serialize)]
        struct Status<'a> {
            #[serde(flatten)]
            identity: &'a Identity,
            seed: u64,
            power: &'static str,
            physics: Value,
            lie: Option<Lie>,
            faults: Value,
            cache_dirty_bytes: u64,
            cache_capacity_bytes: u64,
            credits: Credits,
            recording: Option<RecordingStatus>,
            counters: Value,
        }
        let state = self.disk.state();
        json!(Status {
            identity: self.identity,
            seed: self.disk.seed(),
            power: if self.disk.has_power() { "on" } else { "off" },
            physics: json!(state.timing.physics()),
            lie: state.lie,
            faults: json!(state.faults.states()),
            cache_dirty_bytes: state.volatile.dirty_bytes(),
            cache_capacity_bytes: state.volatile.capacity_bytes(),
            credits: state.timing.credits(self.disk.now_ns()),
            recording: state.recorder.as_ref().map(Recorder::status),
            counters: json!(self.disk.counters.now()),
        })
    }
}
