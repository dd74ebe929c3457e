"""Start a program that sees only what it needs, as a user who is not root: the child side of `system.confinement`.

    python -I -S confined_process.py run     DESCRIPTOR PROGRAM ARGUMENT...
    python -I -S confined_process.py resolve DESCRIPTOR

The descriptor is of a file with a JSON object: the user and the paths of a `confinement.View`, or of what is to be resolved.

`run`: the program gets mount, PID, IPC and network namespaces of its own. Its root directory is empty but for bind mounts: system
folders and programs (read-only), originals (read-only, and no program in them can be executed), and targets. It can gain no
privileges (PR_SET_NO_NEW_PRIVS), and nothing that it starts outlives it. Each path but a target is opened as the user, and the
descriptor is what is mounted: a path that is exchanged meanwhile is either refused or another one that this user can read.

`resolve`: print what the paths are, as the user sees them, as a JSON list.

This file is executed by its path, with the standard library alone, because root imports nothing on behalf of another user.
"""

import ctypes
import errno
import json
import os
import resource
import signal
import stat
import sys
from typing import Any, NoReturn

FAILED = 125
"""The exit code when the program was not started; the reason is on stderr."""
REFUSED_PREFIX = "plinth: not started: "
_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWPID, _CLONE_NEWNET = 0x00020000, 0x08000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND = 1, 2, 4, 8, 32, 4096
_MS_REC, _MS_PRIVATE = 1 << 14, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_STAGES = ("/tmp", "/mnt", "/var/tmp")
"""Folders over which the new root directory may be mounted until it is the root directory."""
_ROOT_OPTIONS = "mode=755,size=64m"
_READ_ONLY = _MS_RDONLY | _MS_NOSUID | _MS_NODEV
_libc = ctypes.CDLL(None, use_errno=True)


class NotStarted(Exception):
    """Why the program is not started."""


def main(mode: str, descriptor: int, words: list[str]) -> NoReturn:
    """Do what the module says; exits with FAILED and the reason on stderr when the program cannot be started."""
    with os.fdopen(descriptor, "rb") as file:
        view = json.load(file)
    try:
        if mode == "resolve":
            _become(view)
            with os.fdopen(1, "w") as out:
                json.dump([_described(path) for path in view["originals"]], out)
            os._exit(0)
        _run(view, words)
    except NotStarted as error:
        _give_up(str(error))
    except OSError as error:
        _give_up(f"{error.filename or ''}: {error.strerror}".removeprefix(": "))


def _give_up(reason: str) -> NoReturn:
    os.write(2, f"{REFUSED_PREFIX}{reason}\n".encode(errors="replace"))
    os._exit(FAILED)


def open_path(path: str) -> int:
    """Open a file or a directory that may be looked at, for reference only (O_PATH). Raises NotStarted for anything else.

    A FIFO, a socket or a device is never opened, which could wait, or do something.
    """
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        mode = os.fstat(descriptor).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise NotStarted(f"{path}: neither a regular file nor a directory")
        os.close(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY))
    except OSError as error:
        raise NotStarted(f"{path}: {error.strerror}") from error
    except ValueError:
        raise NotStarted(f"{path}: the path has a NUL in it") from None
    return descriptor


def _real_path(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")


def _described(path: str) -> dict[str, Any]:
    """Return the real path of a file or directory and what it is; or why it cannot be read."""
    try:
        descriptor = open_path(path)
    except NotStarted as error:
        return {"error": str(error).removeprefix(f"{path}: ")}
    status, real = os.fstat(descriptor), _real_path(descriptor)
    os.close(descriptor)
    return {
        "path": real,
        "is_directory": stat.S_ISDIR(status.st_mode),
        "size_bytes": status.st_size,
        "modified_ns": status.st_mtime_ns,
        "device": status.st_dev,
        "inode": status.st_ino,
    }


def _run(view: dict[str, Any], words: list[str]) -> NoReturn:
    """Run the program as process 2 of a PID namespace whose process 1 waits for it, and end as it ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # each path has a descriptor until it is mounted
    view["open_files"] = soft, hard
    network = 0 if view["network"] else _CLONE_NEWNET
    ipc = 0 if view["shared_memory"] else _CLONE_NEWIPC
    _check(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWPID | ipc | network), "make namespaces")
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    alive, life = os.pipe()  # of this process: its end closes `life`
    came, report = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(life)
        os.close(came)
        try:
            _be_first(view, words, alive, report)
        except NotStarted as error:
            _give_up(str(error))
        except OSError as error:
            _give_up(f"{error.filename or ''}: {error.strerror}".removeprefix(": "))
    os.close(report)
    _, status_of_first = os.waitpid(first, 0)
    reported = os.read(came, 16)
    _end_as(int(reported) if reported else status_of_first)


def _be_first(view: dict[str, Any], words: list[str], alive: int, report: int) -> NoReturn:
    _enter(view, words)
    _become(view)
    _end_with_parent(alive)
    program = os.fork()
    if program == 0:
        os.close(report)
        _execute(view, words)
    while True:  # as process 1 it inherits what others leave behind
        ended, status = os.wait()
        if ended == program:
            os.write(report, str(status).encode())
            os._exit(0)


def _end_with_parent(alive: int) -> None:
    """Have this process killed with its parent, in a PID namespace where the parent's pid cannot be seen."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.set_blocking(alive, False)
    try:
        os.read(alive, 1)
    except BlockingIOError:
        return
    os._exit(FAILED)


def _execute(view: dict[str, Any], words: list[str]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, view["open_files"])
    if view["memory_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_AS, (view["memory_bytes"], view["memory_bytes"]))
    try:
        os.execvp(words[0], words)
    except OSError as error:
        _give_up(f"{words[0]}: {error.strerror}")


def _end_as(status: int) -> NoReturn:
    """End with the exit code, or by the signal, of the program."""
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _become(view: dict[str, Any]) -> None:
    """Become the user for good, without a way to gain privileges."""
    if view["uid"] != os.geteuid():
        os.setgroups(view["groups"])
        os.setresgid(view["gid"], view["gid"], view["gid"])
        os.setresuid(view["uid"], view["uid"], view["uid"])
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "give up gaining privileges")


def _programs(folders: list[str], program: str) -> list[tuple[int, str, int]]:
    """Open folders of programs and libraries. Those that the user cannot read are left out, unless the program itself is in there."""
    opened = []
    for folder in folders:
        try:
            opened.append((open_path(folder), folder, _READ_ONLY))
        except NotStarted as error:
            if program.startswith(f"{folder}/") and not str(error).endswith(os.strerror(errno.ENOENT)):
                raise
    return opened


def _opened_as_user(view: dict[str, Any], words: list[str]) -> list[tuple[int, str, int]]:
    """Return a descriptor, a place and mount flags for each path that the user must be able to read."""
    groups = os.getgroups()
    os.setgroups(view["groups"])
    os.setegid(view["gid"])
    os.seteuid(view["uid"])  # the effective capabilities go with it
    try:
        programs = _programs(view["programs"], words[0])
        originals = [(_unmoved(path), path, _READ_ONLY | _MS_NOEXEC) for path in view["originals"]]
        sockets = [(_unmoved(path), path, _READ_ONLY | _MS_NOEXEC) for path in view["sockets"]]
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
    # Programs are also where links lead: some find their libraries by their real path.
    programs += [(opened, real, flags) for opened, path, flags in programs if (real := _real_path(opened)) != path]
    return [*programs, *originals, *sockets]


def _unmoved(path: str) -> int:
    """Open a path that has been resolved. Raises NotStarted where it is or leads through a symbolic link by now."""
    descriptor = open_path(path)
    if (real := _real_path(descriptor)) != path:
        raise NotStarted(f"{path}: it leads to {real} by now")
    return descriptor


def _enter(view: dict[str, Any], words: list[str]) -> None:
    """Make the root directory of the program, and enter it."""
    flags = os.O_PATH | os.O_CLOEXEC
    system = [path for path in SYSTEM if os.path.isdir(path)]
    links = {path: os.readlink(path) for path in system if os.path.islink(path)}
    opened = [(os.open(path, flags), path, _READ_ONLY) for path in system if path not in links]
    opened += [(os.open(path, flags), path, _READ_ONLY) for path in view["own"]]
    devices = [(os.open(path, flags), path, _MS_NOSUID | _MS_NOEXEC) for path in _DEVICES if os.path.exists(path)]
    if view["shared_memory"] and os.path.isdir("/dev/shm"):
        devices.append((os.open("/dev/shm", flags), "/dev/shm", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC))
    opened += _opened_as_user(view, words)
    # Root has made the targets, perhaps where the user cannot find them. What the user may do in them is up to their rights.
    opened += [(_unmoved(path), path, _MS_NOSUID | _MS_NODEV | _MS_NOEXEC) for path in view["targets"]]
    root = next((stage for stage in _STAGES if os.path.isdir(stage)), None)
    if root is None:
        raise NotStarted(f"there is none of {', '.join(_STAGES)}")
    _mount("plinth", root, "tmpfs", _MS_NOSUID | _MS_NODEV, _ROOT_OPTIONS)
    for folder, mode in (("tmp", 0o1777), ("proc", 0o755), ("dev", 0o755), ("dev/shm", 0o1777), ("run", 0o755)):
        os.mkdir(f"{root}/{folder}")
        os.chmod(f"{root}/{folder}", mode)
    for path, target in links.items():
        os.symlink(target, f"{root}{path}")
    os.symlink("/proc/self/fd", f"{root}/dev/fd")
    shown = sorted((*opened, *devices), key=lambda one: (one[1].count("/"), one[1]))
    for descriptor, path, _ in shown:
        _show(descriptor, f"{root}{path}")
    _restrict(root, {f"{root}{path}": mount_flags for _, path, mount_flags in shown})
    os.chdir(root)
    _check(_libc.pivot_root(b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "leave the root directory")
    os.chdir("/")
    try:
        _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    except OSError as error:
        if error.errno != errno.EPERM:  # in some containers; it is empty then
            raise


def _show(descriptor: int, place: str) -> None:
    """Mount what a descriptor stands for at `place`, with all that is mounted below it."""
    if not os.path.lexists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o444))
    elif os.path.islink(place):
        raise NotStarted(f"{place}: a link of the system is there")
    _mount(f"/proc/self/fd/{descriptor}", place, None, _MS_BIND | _MS_REC)


def _restrict(root: str, places: dict[str, int]) -> None:
    """Set the flags of each mount below the new root directory: those of the place that it is in (proc_pid_mountinfo(5))."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        points = [_unescaped(line.split(" ")[4]) for line in file]
    for point in dict.fromkeys(points):
        place = point
        while place.startswith(f"{root}/") and place not in places:
            place = os.path.dirname(place)
        if place in places:
            _mount(None, point, None, _MS_REMOUNT | _MS_BIND | places[place])


def _unescaped(text: str) -> str:
    for escaped, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escaped, plain)
    return text


def _mount(source: str | None, point: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, point, kind)]
    _check(_libc.mount(*words, flags, None if options is None else options.encode()), f"mount {point}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
