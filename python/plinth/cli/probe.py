"""The commands about what a place can do by itself: probe fsync, probe io."""

from cyclopts import App

from plinth.cli.probe_fsync import fsync
from plinth.cli.probe_io import io

probe = App(
    name="probe",
    help="Measure what a place can do before any server uses it: durable writes (fsync), and "
    "I/O in PostgreSQL's shapes by fio (io).",
    help_format="plaintext",
)
probe.command(fsync)
probe.command(io)
