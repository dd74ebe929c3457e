"""The commands probe fsync and probe io, which measure storage without a server."""

from cyclopts import App

from plinth.cli.probe_fsync import fsync
from plinth.cli.probe_io import io

probe = App(
    name="probe",
    help="Measure storage without a server: durable writes (fsync), and I/O patterns of PostgreSQL by fio (io).",
    help_format="plaintext",
)
probe.command(fsync)
probe.command(io)
