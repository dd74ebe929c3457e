"""The files that libpq reads for a connection: what would have it wait, or read without end, is refused before it opens them."""

import os
import pwd
from collections.abc import Iterator, Mapping
from pathlib import Path

from plinth.common.libpq import ConninfoError, make_conninfo, parameters
from plinth.system.libpq import stopped
from plinth.system.regular_file import MOST_TEXT_BYTES, check_regular_if_there

STOP = {"load_balance_hosts": "stop here"}
"""libpq completes and checks all parameters, in a fixed order, and then connects. One of the last that it checks, set to an invalid
value, makes it stop before it connects: the parameters can be read, and nothing was sent."""
_TLS_FILES = {
    "sslrootcert": "root.crt",
    "sslcert": "postgresql.crt",
    "sslkey": "postgresql.key",
    "sslcrl": "root.crl",
    "sslkeylogfile": "",
}
_NO_FILES = {"sslrootcert": "system"}


def check_files(conninfo: str) -> None:
    """Check every file that libpq would read to connect by `conninfo`. Raises OSError, which names the file."""
    check_early_files(conninfo)
    check_files_of(stopped(make_conninfo(conninfo, **STOP)).parameters)


def check_early_files(conninfo: str) -> None:
    """Check what libpq reads while it completes a connection string: passwords, and services if it names one. Raises OSError."""
    try:
        given = parameters(conninfo)
    except (ConninfoError, UnicodeError):
        return  # which libpq says better
    if given.get("service") or os.environ.get("PGSERVICE"):
        for path in _service_files(given):
            check_regular_if_there(path, MOST_TEXT_BYTES)
    passwords = given.get("passfile") or os.environ.get("PGPASSFILE") or str(_home() / ".pgpass")
    if passwords != os.devnull:  # which is how a user says that there are none
        check_regular_if_there(passwords, MOST_TEXT_BYTES)


def check_files_of(completed: Mapping[str, str]) -> None:
    """Check the files of parameters that libpq has completed: certificates and keys. Raises OSError."""
    for name, usual in _TLS_FILES.items():
        path = completed.get(name) or (usual and str(libpq_folder() / usual))
        if path and path != _NO_FILES.get(name):
            check_regular_if_there(path, MOST_TEXT_BYTES)


def libpq_folder() -> Path:
    """Return the folder of libpq's default files of TLS."""
    return _home() / ".postgresql"


def _service_files(given: Mapping[str, str]) -> Iterator[str]:
    if named := given.get("servicefile") or os.environ.get("PGSERVICEFILE"):
        yield named
    else:
        yield str(_home() / ".pg_service.conf")
    if folder := os.environ.get("PGSYSCONFDIR"):
        yield str(Path(folder) / "pg_service.conf")


def _home() -> Path:
    return Path(os.environ.get("HOME") or pwd.getpwuid(os.geteuid()).pw_dir)
