//! Reads any bytes as a log and as a replay file, and checks what must hold for all of them. Shared with the fuzz targets in `fuzz/`.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each target uses its part; what is unwrapped is asserted"
)]

use std::fs;
use std::path::{Path, PathBuf};

use plinth_log::{ReplayFile, ReplayFileError, parameters, prepare};
use serde_json::json;

/// Bytes as a log: what is written of it can be read, and is as much as was said.
pub(crate) fn log(bytes: &[u8]) {
    let folder = folder();
    let (log, output) = (folder.path().join("log"), folder.path().join("replay"));
    fs::write(&log, bytes).unwrap();
    let config = json!({
        "files": [log], "log_line_prefix": null, "classes": 3, "output": output, "overwrite": false,
        "users": [], "databases": [], "applications": [], "begin": null, "end": null,
    });
    let config = serde_json::from_value(config).unwrap();
    let Ok(prepared) = prepare(&config, &mut |_| true) else {
        assert!(!output.exists(), "nothing is left of a log that is none");
        return;
    };
    let said = serde_json::to_value(&prepared).unwrap();
    let statements = said["written"]["statements"].as_u64().unwrap();
    assert_eq!(output.exists(), statements > 0);
    if statements > 0 {
        assert_eq!(read(&output).unwrap(), statements);
    }
}

/// Bytes as a replay file: it is refused, or each of its statements can be read.
pub(crate) fn replay_file(bytes: &[u8]) {
    let folder = folder();
    let path: PathBuf = folder.path().join("replay");
    fs::write(&path, bytes).unwrap();
    match read(&path) {
        Ok(_) | Err(ReplayFileError::Malformed(_)) => {}
        Err(ReplayFileError::Io(error)) => {
            assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{error}");
        }
    }
}

/// Returns how many statements a replay file has, each of which is read whole.
fn read(path: &Path) -> Result<u64, ReplayFileError> {
    let file = ReplayFile::open(path)?;
    let mut statements = file.statements()?;
    let (mut count, mut before_us) = (0, 0);
    while let Some(statement) = statements.next(&file)? {
        assert!(statement.start_us >= before_us, "in the order of time");
        before_us = statement.start_us;
        assert!((statement.session as usize) < file.sessions.len());
        assert!((statement.class as usize) < file.classes.len());
        if let Some((given, bytes)) = statement.parameters {
            assert_eq!(parameters(bytes).count(), usize::from(given));
        }
        count += 1;
    }
    Ok(count)
}

/// In memory where that is possible: a fuzzer makes thousands of files a second.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}
