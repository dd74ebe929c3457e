"""The key of a run: a secret outside its bundle, which shows that a bundle was begun by this user on this machine.

keys/RUN_ID.key in the state directory: 32 random bytes, mode 0600, in a folder of mode 0700 that belongs to the user whose
run it is. A process that can read a key could have run commands as that user anyway.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from plinth.model.errors import Refused
from plinth.system.failures import from_os_error
from plinth.system.paths import checked_run_id, ensure, keys_dir, state_dir
from plinth.system.regular_file import open_regular_file, read_up_to

_KEY_BYTES = 32
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class NoKey(Refused):
    """The requested run has no key."""


class RunKey(NamedTuple):
    """The key of one run."""

    run_id: str
    secret: bytes

    def mac(self, parts: Mapping[str, bytes]) -> str:
        """Return the hexadecimal HMAC-SHA256 (RFC 2104) of the run's id and of `parts`, each with its name.

        Every text is preceded by its length, so that no two different inputs are the same sequence of bytes.
        """
        digest = hmac.new(self.secret, digestmod=hashlib.sha256)
        for text in (b"plinth run key 1", self.run_id.encode(), *_flat(parts)):
            digest.update(len(text).to_bytes(8, "big") + text)
        return digest.hexdigest()


def create_key(run_id: str) -> RunKey:
    """Create the key of a new run durably. Raises Refused if it exists, or if others can read the directory."""
    key = RunKey(checked_run_id(run_id), secrets.token_bytes(_KEY_BYTES))
    folder = keys_dir()
    ensure(state_dir())
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        with _opened_folder() as directory:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(_name(run_id), flags, 0o600, dir_fd=directory)
            try:
                os.write(file, key.secret)
                os.fsync(file)
            finally:
                os.close(file)
            os.fsync(directory)
    except OSError as error:
        raise from_os_error(error, "write the key of the run", folder / _name(run_id)) from error
    return key


def read_key(run_id: str) -> RunKey:
    """Read the key of a run. Raises NoKey if there is none, Refused if other users could have read or written it."""
    path = keys_dir() / _name(checked_run_id(run_id))
    try:
        with _opened_folder() as directory:
            with open_regular_file(path.name, dir_fd=directory) as file:
                _check_own(os.fstat(file.fileno()), str(path), is_folder=False)
                secret = read_up_to(file, _KEY_BYTES + 1)
    except FileNotFoundError as error:
        raise NoKey(f"there is no key of run {run_id}", where=str(path)) from error
    except OSError as error:
        raise from_os_error(error, "read the key of the run", path) from error
    if len(secret) != _KEY_BYTES:
        raise Refused(f"the key of the run has not {_KEY_BYTES} bytes", where=str(path))
    return RunKey(run_id, secret)


def forget_key(run_id: str) -> bool:
    """Remove the key of a run, whose bundle then cannot be resumed; return whether it existed."""
    path = keys_dir() / _name(checked_run_id(run_id))
    try:
        with _opened_folder() as directory:
            os.unlink(path.name, dir_fd=directory)
            os.fsync(directory)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise from_os_error(error, "remove the key of the run", path) from error
    return True


def _name(run_id: str) -> str:
    return f"{run_id}.key"


def _flat(parts: Mapping[str, bytes]) -> Iterator[bytes]:
    for name, text in parts.items():
        yield name.encode()
        yield text


@contextmanager
def _opened_folder() -> Iterator[int]:
    """Yield a descriptor of the directory of keys, so that the checked directory is the one that is used."""
    directory = os.open(keys_dir(), _FOLDER)
    try:
        _check_own(os.fstat(directory), str(keys_dir()), is_folder=True)
        yield directory
    finally:
        os.close(directory)


def _check_own(found: os.stat_result, where: str, *, is_folder: bool) -> None:
    """Raise Refused if other users have access."""
    if found.st_uid != os.geteuid():
        raise Refused(
            f"it belongs to user id {found.st_uid}, not to us ({os.geteuid()})",
            where=where,
            hint="resume as the user whose run it is, or set PLINTH_STATE_DIR to a directory of yours",
        )
    if found.st_mode & _OTHERS:
        raise Refused(
            f"others may use it (mode {stat.S_IMODE(found.st_mode):04o}), so that a key in it proves nothing",
            where=where,
            hint=f"if nobody can have changed it: chmod {'700' if is_folder else '600'} {where}",
        )
    if not is_folder and not (stat.S_ISREG(found.st_mode) and found.st_nlink == 1):
        raise Refused("it is not a regular file of one name", where=where, hint="remove it")
