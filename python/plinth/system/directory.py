"""Creates directories with a label of Plinth, removes them only while they have it, and closes directories to other users."""

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plinth.model.errors import PlinthError, Refused, RunError
from plinth.system.failures import from_os_error
from plinth.system.mounts import mount_id, mounts_within
from plinth.system.owner import Owner

LABEL_FILE = ".plinth-label"
_NO_LABEL = (errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EACCES)
"""None of that name, or none that we wrote: a link, a directory, a socket, another user's. All other errors come from the disk."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def sync_refusal(path: Path) -> str | None:
    """Return why the file system of a directory does not sync it; None if it does, and of one that we may not read.

    PostgreSQL does not run on such a file system: it takes EBADF and EINVAL for one that has no need of it, and any other error for a
    failure (fsync_fname_ext in fd.c). Raises OSError where the directory cannot be opened.
    """
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return None
    try:
        os.fsync(directory)
    except OSError as error:
        return None if error.errno in (errno.EBADF, errno.EINVAL) else error.strerror
    finally:
        os.close(directory)
    return None


def label_of(run_id: str) -> str:
    """Return the label of everything that a run creates."""
    return f"plinth-{run_id}"


def filesystem_label(label: str, name: str) -> str:
    """Return the label of the file system of the storage `name`, in the 12 characters that XFS allows."""
    return "pl" + hashlib.sha256(f"{label}/{name}".encode()).hexdigest()[:10]


def make_directory(path: Path, label: str, owner: Owner, mode: int = 0o700) -> None:
    """Make the directory `path`, put our label in it, and hand it to `owner`. Its parent must be there.

    Refused when something of that name is there already, a dangling symbolic link too.
    """
    try:
        path.mkdir(mode=0o700)
        label_directory(path, label, owner, mode)
        _sync(path.parent)
    except OSError as error:
        raise from_os_error(error, "make the directory", path) from error


def make_directory_to_fill(path: Path, owner: Owner) -> None:
    """Make the directory `path` of `owner`, without a label, for a confined process to fill. One that is there stays as it is.

    Its parent may belong to `owner`, too, so it is opened first and has to be what its path says.
    """
    try:
        parent = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise from_os_error(error, "make the directory", path) from error
    try:
        if (real := Path(f"/proc/self/fd/{parent}").readlink()) != path.parent:
            raise Refused(f"{path.parent} is a link by now, and leads to {real}", where=str(path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path.name, 0o700, dir_fd=parent)
            directory = os.open(path.name, _DIRECTORY, dir_fd=parent)
            try:
                if not owner.is_current_user and os.fstat(directory).st_uid == os.geteuid():
                    os.fchown(directory, owner.uid, owner.gid)
            finally:
                os.close(directory)
    except OSError as error:
        raise from_os_error(error, "make the directory", path) from error
    finally:
        os.close(parent)


@contextmanager
def filled_by(owner: Owner, output: Path, doing: str) -> Iterator[Path]:
    """Make a directory next to `output` for a confined process of `owner` to write to, and remove it at the end. `doing` is for errors."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=".plinth-", dir=output.parent.resolve()))
    except OSError as error:
        raise from_os_error(error, doing, output) from error
    try:
        if not owner.is_current_user:
            os.chown(folder, owner.uid, owner.gid)
        yield folder
    finally:
        _close_to_others(folder)
        shutil.rmtree(folder)


def take_filled(folder: Path, name: str, output: Path, *, overwrite: bool) -> None:
    """Move the file `name`, which a confined process has written to `folder`, to `output`, for us alone to read.

    Raises Refused where it is anything but a file, or `output` is there and not to be overwritten.
    """
    _close_to_others(folder)  # before anything of it is looked at
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                raise Refused("what was written is not a file of one name", where=str(output))
            os.fchown(descriptor, os.geteuid(), os.getegid())
            os.fchmod(descriptor, 0o600)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if overwrite:
            (folder / name).replace(output)
        else:
            output.hardlink_to(folder / name)
        _sync(output.parent)
    except OSError as error:
        raise from_os_error(error, "write the file", output) from error


def _close_to_others(folder: Path) -> None:
    """Take a directory of our own that another user was given back from that user."""
    descriptor = os.open(folder, _DIRECTORY)
    try:
        os.fchown(descriptor, os.geteuid(), os.getegid())
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)


def label_directory(path: Path, label: str, owner: Owner, mode: int = 0o700) -> None:
    """Put our label into a directory that we own, and hand it to `owner`: for the root of a new file system."""
    try:
        directory = os.open(path, _DIRECTORY)
    except OSError as error:
        raise from_os_error(error, "open the directory", path) from error
    try:
        found = os.fstat(directory)
        if found.st_uid not in (os.geteuid(), owner.uid):
            raise Refused("the directory was replaced by another user's while it was made", where=str(path))
        file = os.open(LABEL_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=directory)
        try:
            os.write(file, _content(label))
            os.fsync(file)
        finally:
            os.close(file)
        os.fchmod(directory, mode)
        if (found.st_uid, found.st_gid) != (owner.uid, owner.gid):
            os.fchown(directory, owner.uid, owner.gid)
        os.fsync(directory)
    except OSError as error:
        raise from_os_error(error, "write our label", path / LABEL_FILE) from error
    finally:
        os.close(directory)


def found_label(path: Path) -> str | None:
    """Return the label of the directory `path`; None without a readable one. Symbolic links are not followed."""
    try:
        directory = os.open(path, _DIRECTORY)
    except OSError:
        return None
    try:
        return _read_label(directory)
    except OSError:
        return None
    finally:
        os.close(directory)


def nearest_label(path: Path) -> str | None:
    """Return the label of the directory `path` or of its nearest labelled ancestor; None without one."""
    return next(filter(None, map(found_label, (path, *path.parents))), None)


def remove_directory(path: Path, label: str) -> None:
    """Remove the directory `path` and all that is in it, if it has `label` or is empty; nothing when it is gone.

    Symbolic links are removed, never followed, and no mount is crossed. The label is removed last, so that an
    interrupted removal can be resumed. Refused, before anything is touched, for what is not ours.
    """
    try:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _not_removed(error, path) from error
    try:
        directory = os.open(path.name, _DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        os.close(parent)
        return
    except OSError as error:
        os.close(parent)
        raise Refused(
            "not removed: it is no longer a directory, so it is not the one we made", where=str(path)
        ) from error
    try:
        _check_ours(path, directory, parent, label)
        _empty(directory, spare=LABEL_FILE)
        with contextlib.suppress(FileNotFoundError):  # an empty directory has no label
            os.unlink(LABEL_FILE, dir_fd=directory)
        os.rmdir(path.name, dir_fd=parent)
        os.fsync(parent)
    except OSError as error:
        raise _not_removed(error, path) from error
    finally:
        os.close(directory)
        os.close(parent)


def _check_ours(path: Path, directory: int, parent: int, label: str) -> None:
    real = Path(os.path.realpath(path))
    stacked = mounts_within(real)
    if stacked or mount_id(directory) != mount_id(parent):
        where = ", ".join(f"{mount.source} on {mount.point}" for mount in stacked) or str(path)
        raise Refused(f"not removed: something is mounted there ({where})", where=str(path), hint="unmount it first")
    if not _bears(directory, label):
        found = _read_label(directory)
        raise Refused(
            f"not removed: it does not have our label {label!r}" + (f" but {found!r}" if found else ""),
            where=str(path),
            hint=f"look at what is in it; we remove only a directory with our label in {LABEL_FILE}",
        )


def _bears(directory: int, label: str) -> bool:
    if _read_label(directory) == label:
        return True
    # We may have been killed between making the directory and finishing its label.
    names = os.listdir(directory)
    begun = _raw_label(directory)
    return not names or (names == [LABEL_FILE] and begun is not None and _content(label).startswith(begun))


def _read_label(directory: int) -> str | None:
    line, end, _ = (_raw_label(directory) or b"").partition(b"\n")
    return line.decode(errors="replace") if end else None


def _raw_label(directory: int) -> bytes | None:
    """Read a label; None when no file of that name is one. OSError when a disk cannot be read: nobody knows whose it is then."""
    try:
        file = os.open(LABEL_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        return _none_if_no_label(error)
    try:
        return os.read(file, 4096)
    except OSError as error:
        return _none_if_no_label(error)
    finally:
        os.close(file)


def _none_if_no_label(error: OSError) -> None:
    if error.errno not in _NO_LABEL:
        raise error


def _content(label: str) -> bytes:
    return f"{label}\nMade by Plinth, and removed by it: plinth clean\n".encode()


def _empty(directory: int, spare: str | None = None) -> None:
    """Remove everything in an open directory but the file named `spare`."""
    here = mount_id(directory)
    with os.scandir(directory) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name != spare]
    for name, is_directory in listed:
        # Entries may disappear meanwhile, which is fine.
        with contextlib.suppress(FileNotFoundError):
            if is_directory:
                _remove_within(directory, name, here)
            else:
                os.unlink(name, dir_fd=directory)


def _remove_within(directory: int, name: str, mount: int) -> None:
    child = os.open(name, _DIRECTORY, dir_fd=directory)
    try:
        if mount_id(child) != mount:
            raise RunError(f"something was mounted on {name} while its directory was being removed")
        _empty(child)
    finally:
        os.close(child)
    os.rmdir(name, dir_fd=directory)


def _not_removed(error: OSError, path: Path) -> PlinthError:
    return from_os_error(error, "remove the directory", path, hint="look at what holds it, then: plinth clean")


def _sync(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


OWNERS_FOLDER = 0o700
_NOT_FOR_OTHERS = 0o077


@contextmanager
def for_owner_only(folder: Path | int | None) -> Iterator[None]:
    """Close `folder` to all others, and have every file that this process makes meanwhile be its owner's (0600, 0700).

    `folder` is a path or a descriptor. Nothing where there is no `folder`. The umask is the process's: other threads make such files, too.
    """
    if folder is None:
        yield
        return
    os.chmod(folder, OWNERS_FOLDER)  # noqa: PTH101
    before = os.umask(_NOT_FOR_OTHERS)
    try:
        yield
    finally:
        os.umask(before)
