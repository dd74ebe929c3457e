"""Accesses the files of a bundle relative to a descriptor of its directory.

Bundles are shared, so what is in one is not to be trusted. Each step of a name is opened without following symbolic
links, and only regular files of a bounded size are read: no name leads out of the bundle, and nothing there can make its
reader wait. A folder that is renamed while it is held is still the one that is written to.
"""

import os
import shutil
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import PlinthError, RunError, UsageError
from plinth.system.failures import from_os_error
from plinth.system.log_file import LogFile
from plinth.system.owner import InvokingUser, invoking_user
from plinth.system.regular_file import FILE_KIND, FOLDER_KIND, LINK_KIND, kind_of, open_regular_file

MAX_DOCUMENT_BYTES = 64 * 2**20
"""Maximum size of a file that is read as a whole; a plan of ten thousand trials has a tenth of it."""
_CHUNK_BYTES = 2**20
_MAX_DEPTH = 100
_PARTIAL = ".partial"
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Entry(NamedTuple):
    """An entry of a bundle: its name from the bundle's folder on, and what it is ("a file", "a FIFO")."""

    name: str
    kind: str

    @property
    def is_file(self) -> bool:
        """Return whether the entry is a regular file."""
        return self.kind == FILE_KIND

    @property
    def is_folder(self) -> bool:
        """Return whether the entry is a directory, not a link to one."""
        return self.kind == FOLDER_KIND


class BundleFolder:
    """A bundle's folder, held open. Names are relative to it, as in "env/host.json".

    Every failure raises a PlinthError that names the file. The given path may lead through links, since the user chooses
    the directory; its content is untrusted.
    """

    def __init__(self, path: Path, called: str = "the bundle") -> None:
        """Open the directory at `path`, which errors name as `called`. Raises UsageError if it does not exist."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise UsageError("there is no such folder", where=str(path), hint="`plinth run` makes bundles") from error
        except NotADirectoryError as error:
            raise UsageError("this is not a bundle: it is no folder", where=str(path)) from error
        except OSError as error:
            raise from_os_error(error, f"open {called}", path) from error
        except ValueError as error:  # it contains a NUL
            raise UsageError(f"this is no path: {error}", where=str(path)) from error
        self._hold(descriptor, path, called)

    def _hold(self, descriptor: int, path: Path, called: str) -> None:
        self.descriptor = descriptor
        self._called = called
        self._given = path
        self._closing = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def made(cls, path: Path) -> "BundleFolder":
        """Open the directory at `path`, creating it if nothing exists there."""
        try:
            missing = [folder for folder in path.parents if not folder.exists()]
            path.mkdir(parents=True, exist_ok=True)
            for folder in missing:
                cls(folder)._give_itself()
        except FileExistsError as error:
            raise UsageError(
                "the place for the bundle is a file", where=str(path), hint="give another --bundle"
            ) from error
        except OSError as error:
            raise from_os_error(error, "make the folder for the bundle", path) from error
        except ValueError as error:
            raise UsageError(f"this is no path: {error}", where=str(path)) from error
        return cls(path)

    def folder(self, name: str) -> "BundleFolder":
        """Open the subdirectory `name` without following links. Raises RunError if it cannot be opened."""
        with self._reading(name):
            descriptor = self._step(name, _LIST)
        found = BundleFolder.__new__(BundleFolder)
        found._hold(descriptor, self._given / name, self._called)
        return found

    def close(self) -> None:
        """Close the directory, which also happens when this object is collected."""
        self._closing()

    @property
    def path(self) -> Path:
        """Return the current path for messages; as it was given, unless it was renamed."""
        if self._stands_there():
            return self._given
        return Path(f"/proc/self/fd/{self.descriptor}").readlink()

    def entry(self, name: str) -> Entry | None:
        """Return the entry at `name`; None if it, or a folder above it, does not exist."""
        with self._reading(name):
            try:
                with self._parent(name) as (parent, last):
                    return Entry(name, kind_of(os.lstat(last, dir_fd=parent).st_mode))
            except FileNotFoundError:
                return None

    def entries(self, folder: str = "") -> list[Entry]:
        """Return the entries of `folder` by name; empty if it does not exist."""
        try:
            descriptor = self._step(folder, _LIST)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._unreadable(error, folder) from error
        try:
            prefix = f"{folder}/" if folder else ""
            with os.scandir(descriptor) as found:
                return sorted(Entry(prefix + each.name, _kind_of(each)) for each in found)
        except OSError as error:
            raise self._unreadable(error, folder) from error
        finally:
            os.close(descriptor)

    def walk(self, folder: str = "") -> Iterator[Entry]:
        """Return all entries below `folder` by name. Links are listed, not followed."""
        left = self.entries(folder)[::-1]
        while left:
            entry = left.pop()
            yield entry
            if entry.is_folder:
                if entry.name.count("/") >= _MAX_DEPTH:
                    raise self._no_part(entry.name, f"folders are nested more than {_MAX_DEPTH} deep")
                left += self.entries(entry.name)[::-1]

    @contextmanager
    def opened(self, name: str) -> Iterator[int]:
        """Open a regular file for reading and return its descriptor. Raises RunError for other types."""
        with self._reading(name):
            descriptor = self._open_to_read(name)
        try:
            with self._reading(name):
                yield descriptor
        finally:
            os.close(descriptor)

    def read_bytes(self, name: str, max_bytes: int = MAX_DOCUMENT_BYTES) -> bytes:
        """Return the content of a file. Raises RunError if it is not a regular file, or larger than `max_bytes`."""
        with self.opened(name) as descriptor:
            is_larger = os.fstat(descriptor).st_size > max_bytes
            data = b"" if is_larger else _read_at_most(descriptor, max_bytes + 1)
        if is_larger or len(data) > max_bytes:  # it may have grown in the meantime
            raise self._no_part(name, f"it has more than {max_bytes:,} bytes")
        return data

    def read_text(self, name: str, max_bytes: int = MAX_DOCUMENT_BYTES) -> str:
        """Return the text of a file. Raises RunError like `read_bytes`, and if it is not UTF-8."""
        try:
            return self.read_bytes(name, max_bytes).decode()
        except UnicodeDecodeError as error:
            raise self._no_part(name, str(error)) from error

    def make_folder(self, name: str) -> None:
        """Create a directory unless it exists; its parent must exist."""
        with self._writing(name), self._parent(name) as (parent, last):
            try:
                os.mkdir(last, dir_fd=parent)
            except FileExistsError:
                os.close(self._step(name, _STEP))  # raises unless it is a directory

    def make_folders(self, name: str) -> None:
        """Create a directory and its missing parents."""
        parts = _parts(name)
        for length in range(1, len(parts) + 1):
            self.make_folder("/".join(parts[:length]))

    @contextmanager
    def new_file(self, name: str) -> Iterator[int]:
        """Create a file, replacing an incomplete one, and yield its descriptor; the file is fsynced at the end."""
        with self._writing(name), self._parent(name) as (parent, last):
            _unlink(last, parent)
            descriptor = os.open(last, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FILE, 0o644, dir_fd=parent)
            try:
                yield descriptor
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def write(self, name: str, content: str | bytes) -> None:
        """Create and fsync a file; the caller ensures that nobody reads it before it is complete."""
        data = os.fsencode(content) if isinstance(content, str) else content  # names may contain any bytes
        with self.new_file(name) as descriptor, open(descriptor, "wb", closefd=False) as file:
            file.write(data)

    def write_durably(self, name: str, content: str | bytes) -> None:
        """Write a file under a temporary name, fsync it, rename it, and fsync the directory."""
        folder, slash, last = name.rpartition("/")
        partial = f"{folder}{slash}.{last}{_PARTIAL}"
        try:
            self.write(partial, content)
            self.rename(partial, name)
        except BaseException:
            self._drop(partial)
            raise

    def rename(self, old: str, new: str) -> None:
        """Rename an entry within its directory, and fsync the directory."""
        with self._writing(new), self._parent(new) as (parent, last):
            os.replace(old.rpartition("/")[2], last, src_dir_fd=parent, dst_dir_fd=parent)
            _sync(os.open(".", _LIST, dir_fd=parent))

    def remove(self, name: str) -> None:
        """Remove a file or a link, if it exists."""
        with self._writing(name), self._parent(name) as (parent, last):
            _unlink(last, parent)

    def remove_tree(self, name: str) -> None:
        """Remove a directory recursively without following links, if it exists."""
        with self._writing(name), self._parent(name) as (parent, last):
            found = self.entry(name)
            if found is None or not found.is_folder:
                _unlink(last, parent)
                return
            try:
                shutil.rmtree(last, dir_fd=parent)
            except RecursionError as error:
                raise RunError("cannot remove it: folders are nested too deep", where=str(self.path / name)) from error

    def give(self, name: str = "") -> None:
        """Give the directory, or the part of it that is `name`, to the user who called sudo, if one did; it is root's otherwise.

        Only what is root's, and files that have no second name: nothing from outside of the directory changes its owner.
        """
        user = invoking_user()
        if user is None:
            return
        with self._writing(name):
            descriptor = self._step(name, _LIST) if name else os.dup(self.descriptor)
            try:
                _give(descriptor, user)
            finally:
                os.close(descriptor)

    def _give_itself(self) -> None:
        user = invoking_user()
        if user is not None:
            _give_folder(self.descriptor, user)

    def sync_folders(self, name: str) -> None:
        """fsync a directory and its subdirectories, so that their entries survive a power cut."""
        with self._writing(name):
            folders = [name, *(entry.name for entry in self.walk(name) if entry.is_folder)]
            for folder in folders:
                _sync(self._step(folder, _LIST))

    def log(self, name: str) -> LogFile:
        """Return the log `name`, to which output of this run is appended."""
        return LogFile(self.path / name, lambda flags: self._open(name, flags))

    def _stands_there(self) -> bool:
        try:
            return os.path.samestat(self._given.stat(), os.fstat(self.descriptor))
        except OSError:
            return False

    def _open(self, name: str, flags: int) -> int:
        with self._parent(name) as (parent, last):
            kind = _kind_at(last, parent)
            if kind not in (None, FILE_KIND, LINK_KIND):  # opening a device may do something; a link is not followed
                raise self._no_part(name, f"it is {kind}, not a file")
            return os.open(last, flags | _FILE, 0o644, dir_fd=parent)

    def _open_to_read(self, name: str) -> int:
        with self._parent(name) as (parent, last):
            kind = _kind_at(last, parent)
            if kind not in (None, FILE_KIND):
                raise self._no_part(name, f"it is {kind}, not a file")
            with open_regular_file(last, dir_fd=parent) as file:
                return os.dup(file.fileno())

    @contextmanager
    def _parent(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the parent directory of `name`, and the last part of the name."""
        *above, last = _parts(name)
        descriptor = self._step("/".join(above), _STEP)
        try:
            yield descriptor, last
        finally:
            os.close(descriptor)

    def _step(self, folder: str, flags: int) -> int:
        """Open `folder` part by part without following links, and yield its descriptor."""
        parts = _parts(folder) if folder else ["."]
        descriptor = os.dup(self.descriptor)
        for number, part in enumerate(parts, start=1):
            try:
                following = os.open(part, flags if number == len(parts) else _STEP, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = following
        return descriptor

    def _drop(self, partial: str) -> None:
        try:
            self.remove(partial)
        except PlinthError:
            return  # the first error is reported; nobody reads the temporary file

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._unreadable(error, name) from error

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise RunError(
                f"cannot write {self._called}: a part of it was taken away while it was written",
                where=str(self.path / name),
                hint="remove and rename nothing in it while it is written",
            ) from error
        except OSError as error:
            raise from_os_error(error, f"write {self._called}", self.path / name) from error

    def _unreadable(self, error: OSError, name: str) -> PlinthError:
        return self._no_part(name, error.strerror or str(error))

    def _no_part(self, name: str, reason: str) -> RunError:
        return RunError(f"cannot read a part of {self._called}: {reason}", where=str(self.path / name))


def _sync(folder: int) -> None:
    """fsync a directory by a descriptor, which is closed."""
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _give(folder: int, user: InvokingUser) -> None:
    """Give files to the owner, the content first: while the folder is root's, no other user can put anything into it."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if _is_plain(entry)]
    for name, is_folder in found:
        descriptor = os.open(name, _LIST if is_folder else os.O_RDONLY | _FILE, dir_fd=folder)
        try:
            state = os.fstat(descriptor)
            if is_folder:
                _give(descriptor, user)
            elif state.st_uid == 0 and state.st_nlink == 1 and stat.S_ISREG(state.st_mode):
                os.fchown(descriptor, user.uid, user.gid)
        finally:
            os.close(descriptor)
    _give_folder(folder, user)


def _give_folder(folder: int, user: InvokingUser) -> None:
    if os.fstat(folder).st_uid == 0:
        os.fchown(folder, user.uid, user.gid)


def _is_plain(entry: "os.DirEntry[str]") -> bool:
    return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


def is_partial(name: str) -> bool:
    """Return whether this is a temporary name of `write_durably`."""
    last = name.rpartition("/")[2]
    return last.startswith(".") and last.endswith(_PARTIAL)


def folder_of(bundle: "Path | BundleFolder") -> BundleFolder:
    """Yield the open directory of a bundle that is given by its path or is already open."""
    return bundle if isinstance(bundle, BundleFolder) else BundleFolder(bundle)


def _parts(name: str) -> list[str]:
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"not a name within a bundle: {name!r}")
    return parts


def _kind_at(name: str, folder: int) -> str | None:
    """Return what is at `name` in a folder, given by its descriptor; None if nothing is."""
    try:
        return kind_of(os.lstat(name, dir_fd=folder).st_mode)
    except FileNotFoundError:
        return None


def _kind_of(entry: "os.DirEntry[str]") -> str:
    if entry.is_dir(follow_symlinks=False):  # the listing has the type of most entries; others need a stat
        return FOLDER_KIND
    if entry.is_file(follow_symlinks=False):
        return FILE_KIND
    return kind_of(entry.stat(follow_symlinks=False).st_mode)


def _unlink(name: str, parent: int) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return


def _read_at_most(descriptor: int, most_bytes: int) -> bytes:
    """Read a file in chunks: Python would allocate `most_bytes` at once, which is a gibibyte where only few bytes are there."""
    content = bytearray()
    while len(content) < most_bytes and (part := os.read(descriptor, min(_CHUNK_BYTES, most_bytes - len(content)))):
        content += part
    return bytes(content)
