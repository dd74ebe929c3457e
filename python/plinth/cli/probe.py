"""The commands probe fsync and probe io, which measure storage without a server, and probe backup, which makes one."""

from cyclopts import App

from plinth.cli.probe_backup import backup
from plinth.cli.probe_fsync import fsync
from plinth.cli.probe_io import io

probe = App(
    name="probe",
    help="Measure storage without an experiment: durable writes (fsync), I/O patterns of PostgreSQL by fio (io), and base backups of a "
    "server (backup).",
    help_format="plaintext",
)
probe.command(fsync)
probe.command(io)
probe.command(backup)
