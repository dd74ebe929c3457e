"""Starts external commands by argument list, never by a shell, and records each with its output."""

import contextlib
import ctypes
import errno
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import IO, NamedTuple, Self

from plinth.common.shown import shown
from plinth.model.errors import MissingCapability, RunError
from plinth.system import cancel
from plinth.system.confined_process import FAILED, REFUSED_PREFIX
from plinth.system.confinement import (
    WAYS,
    Brought,
    Confined,
    NotReadable,
    View,
    confined,
    is_confined,
    resolved,
    resolving,
)
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner
from plinth.system.process import Child

TAIL_LINES = 20
_DEBIAN_PACKAGES = {
    program: package
    for package, programs in {
        "btrfs-progs": ("btrfs", "mkfs.btrfs"),
        "etcd-server": ("etcd",),
        "e2fsprogs": ("dumpe2fs", "mkfs.ext4"),
        "fio": ("fio",),
        "patroni": ("patroni",),
        "hdparm": ("hdparm",),
        "iproute2": ("ip",),
        "kmod": ("modprobe",),
        "lvm2": ("lvcreate", "lvs", "pvremove", "pvs", "vgcreate", "vgremove"),
        "mdadm": ("mdadm",),
        "mount": ("losetup", "mount", "umount"),
        "nvme-cli": ("nvme",),
        "openssh-client": ("ssh",),
        "openssl": ("openssl",),
        "sdparm": ("sdparm",),
        "smartmontools": ("smartctl",),
        "util-linux": ("blkid", "ipcrm", "nsenter", "wipefs"),
        "xfsprogs": ("mkfs.xfs", "xfs_info"),
        "zfs-fuse": ("zfs-fuse",),
        "zfsutils-linux, or zfs-fuse": ("zdb", "zfs", "zpool"),
    }.items()
    for program in programs
}
_END_TIMEOUT_S = 5.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_CHUNK_BYTES = 65536
_MOST_OUTPUT_BYTES = 2**30
_RESOLVE_TIMEOUT_S = 30
_KEPT_WHERE_CONFINED = ("LD_LIBRARY_PATH", "OPENBLAS_NUM_THREADS", "PATH", "PYTHONHOME", "PYTHONPATH", "TZ")
"""What a confined process inherits of our environment, which may hold secrets."""
_NAME = "plinth-start"
_SHELL = ("/bin/sh", "-c", 'read -r word && exec "$@" </dev/null', _NAME)


class Completed(NamedTuple):
    """A command that ended. Output is text; bytes that are not UTF-8 are replaced."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str
    duration_s: float


class CommandRecord(NamedTuple):
    """The record of a command. Exit code and duration are None for one that was left running."""

    argv: tuple[str, ...]
    user: str | None
    exit_code: int | None
    duration_s: float | None
    stdout_tail: str
    stderr_tail: str


class CommandError(RunError):
    """A command failed or timed out (`timed_out`); `completed` has its output."""

    def __init__(self, completed: Completed, reason: str, *, timed_out: bool = False) -> None:
        output = completed.stderr.strip() or completed.stdout.strip()
        super().__init__(
            f"{Path(completed.argv[0]).name} {reason}",
            where=" ".join(completed.argv),
            details=output.splitlines()[-TAIL_LINES:],
        )
        self.completed = completed
        self.timed_out = timed_out


class Runner:
    """Starts commands, in new sessions so that a Ctrl-C at the terminal does not reach them.

    Inherited PG* variables are stripped and LC_ALL is C. `record` is called with every command.
    """

    def __init__(self, record: Callable[[CommandRecord], None] | None = None) -> None:
        self._record = record or (lambda command: None)

    def run(
        self,
        argv: Sequence[str],
        *,
        owner: Owner | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        input_bytes: bytes | None = None,
        timeout_s: float | None = None,
        allowed_exit_codes: Collection[int] = (0,),
        most_output_bytes: int = _MOST_OUTPUT_BYTES,
    ) -> Completed:
        """Run `argv` to its end. Raises CommandError, or MissingCapability when it cannot be started.

        The command dies with us, and with its timeout; so it does when the work is cancelled (`system.cancel`), and when it prints
        more than `most_output_bytes`.
        What handles something brought is started by `run_confined`.
        """
        return self._run(
            argv,
            _Place(owner, cwd, env),
            _Limits(timeout_s, most_output_bytes),
            input_bytes,
            allowed_exit_codes=allowed_exit_codes,
        )

    def run_confined(
        self,
        way: str,
        argv: Sequence[str],
        view: View,
        owner: Owner,
        *,
        env: Mapping[str, str] | None = None,
        input_bytes: bytes | None = None,
        on_line: Callable[[bytes], None] | None = None,
        allowed_exit_codes: Collection[int] = (0,),
    ) -> Completed:
        """Run `argv`, which handles something brought, to its end: as `owner`, and as root with the paths of `view` only.

        `way` is the key of `confinement.WAYS`, whose limits apply. `on_line` gets each line of its output as it comes, which
        is then not kept. Raises as `run` does.
        """
        one = WAYS[way]
        started = confined(argv, one, view, owner) if is_confined(owner) else None
        place = _Place(owner, None, env, is_confined=started is not None)
        limits = _Limits(one.timeout_s, one.output_bytes)
        return self._run(argv, place, limits, input_bytes, on_line, allowed_exit_codes, started)

    def _run(
        self,
        argv: Sequence[str],
        place: "_Place",
        limits: "_Limits",
        input_bytes: bytes | None = None,
        on_line: Callable[[bytes], None] | None = None,
        allowed_exit_codes: Collection[int] = (0,),
        confined: Confined | None = None,
    ) -> Completed:
        """Run `argv`, or what `confined` starts, which is recorded and reported as `argv`."""
        cancel.check()
        started = time.monotonic()
        with _asking(argv, confined) as (started_as, pass_fds):
            process = _start(
                started_as,
                place,
                stdin=subprocess.DEVNULL if input_bytes is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # The forking thread waits here, so that only the death of Plinth triggers the signal.
                preexec_fn=partial(die_with_parent, os.getpid()),
                pass_fds=pass_fds,
            )
        pipes = CommandPipes(process, input_bytes, limits.output_bytes, on_line)
        has_ended = False
        try:
            has_ended = pipes.communicate(limits.timeout_s)
        finally:
            if not has_ended:  # or the work was cancelled
                _kill(process, pipes)
            pipes.close()
        stdout, stderr = pipes.output()
        completed = Completed(
            tuple(argv),
            process.returncode if process.returncode is not None else -signal.SIGKILL,
            stdout.decode(errors="replace"),
            stderr.decode(errors="replace"),
            time.monotonic() - started,
        )
        self._record(
            CommandRecord(
                completed.argv,
                place.user_name,
                completed.exit_code,
                completed.duration_s,
                _tail(completed.stdout),
                _tail(completed.stderr),
            )
        )
        if not has_ended:
            raise limits.exceeded(completed, pipes, is_left=process.returncode is None)
        if confined is not None and completed.exit_code == FAILED and REFUSED_PREFIX in completed.stderr:
            raise place.not_confined(completed)
        if completed.exit_code not in allowed_exit_codes:
            raise CommandError(completed, _ending(completed.exit_code))
        return completed

    def resolve(self, paths: Sequence[Path], owner: Owner) -> list[Brought | NotReadable]:
        """Return what each path is, as `owner` sees it. Nothing is opened that is neither a regular file nor a directory."""
        if not paths:
            return []
        command = resolving(paths, owner)
        limits = _Limits(_RESOLVE_TIMEOUT_S)
        return resolved(self._run(command.launcher, _Place(None, None, None), limits, confined=command).stdout, paths)

    def record(self, command: CommandRecord) -> None:
        """Record a command that a confined process has run."""
        self._record(command)

    def require(self, program: str) -> None:
        """Raise MissingCapability, with the name of the package, if the program does not exist."""
        if shutil.which(program, path=_environment(None)["PATH"]) is None:
            raise MissingCapability(f"{program}: there is no such program", where=program, hint=_hint_for(program))

    def spawn(
        self,
        argv: Sequence[str],
        *,
        log: LogFile,
        owner: Owner | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        pass_fds: Collection[int] = (),
        at_gate: Callable[[int], object] | None = None,
    ) -> Child:
        """Start `argv` and leave it running, its output appended to `log`; `pass_fds` are open in it, too.


        `at_gate` gets the pid while the process waits to become `argv`; if it raises, the process ends without having done anything.

        It outlives us: journal it first. When we die before it has become `argv`, it ends without having done anything
        (`gate`). MissingCapability when there is no such program; that its owner may not execute it is said in its log.
        """
        place = _Place(owner, cwd, env)
        place.check_program(argv)
        cancel.check()
        with log.to_append() as output, Gate() as gate:
            process = _start(
                gated(argv), place, stdin=gate.theirs, stdout=output, stderr=subprocess.STDOUT, pass_fds=pass_fds
            )
            try:
                if at_gate is not None:
                    at_gate(process.pid)
            except BaseException:
                process.kill()  # the shell that waits, which has started nothing
                process.wait()
                raise
            gate.open()
        self._record(CommandRecord(tuple(argv), owner.name if owner else None, None, None, "", ""))
        return Child(process)

    def spawn_connected(self, argv: Sequence[str], connection: socket.socket, *, log: LogFile) -> Child:
        """Start `argv` with a socket as its standard input and output, and `log` for its errors.

        It has to end when the other end of the socket is closed: it is in no journal. Raises MissingCapability when there
        is no such program.
        """
        place = _Place(None, None, {})
        place.check_program(argv)
        cancel.check()
        with log.to_append() as output:
            process = _start(argv, place, stdin=connection.fileno(), stdout=connection.fileno(), stderr=output)
        self._record(CommandRecord(tuple(argv), None, None, None, "", ""))
        return Child(process)


@contextlib.contextmanager
def _asking(argv: Sequence[str], confined: Confined | None) -> Iterator[tuple[Sequence[str], tuple[int, ...]]]:
    """Yield the command to start, and the descriptors that it is given. A list of many paths would be too long for an argument."""
    if confined is None:
        yield argv, ()
        return
    descriptor = os.memfd_create("plinth-view")
    try:
        with open(descriptor, "wb", closefd=False) as file:  # a descriptor has no path
            file.write(confined.asked)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield [*confined.launcher, str(descriptor), *confined.words], (descriptor,)
    finally:
        os.close(descriptor)


class _Limits(NamedTuple):
    """How long a command may take, and how much it may write."""

    timeout_s: float | None
    output_bytes: int = _MOST_OUTPUT_BYTES

    def exceeded(self, completed: Completed, pipes: "CommandPipes", *, is_left: bool) -> CommandError:
        """Return the error for a command that was ended because of a limit; `is_left`: it is still there."""
        left = ", but it hangs in the kernel and is still there" if is_left else ""
        if pipes.is_full:
            from plinth.model.units import format_size  # which takes longer to import than most commands take

            return CommandError(
                completed, f"wrote more than {format_size(self.output_bytes)} of output and was ended{left}"
            )
        return CommandError(completed, f"took longer than {self.timeout_s:g} s and was ended{left}", timed_out=True)


class CommandPipes:
    """A command with pipes, its input, and its output so far.

    Not `Popen.communicate`, which waits for nothing but the pipes: a cancelled work would wait until they are closed.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        input_bytes: bytes | None,
        most_bytes: int = _MOST_OUTPUT_BYTES,
        on_line: Callable[[bytes], None] | None = None,
    ) -> None:
        """`most_bytes` is the most output that is read; each whole line of the standard output goes to `on_line`, if there is one."""
        self._left_bytes = most_bytes
        self._on_line = on_line
        self._process = process
        assert process.stdout is not None
        assert process.stderr is not None
        self._output = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        self._open = dict.fromkeys(self._output, select.POLLIN)
        self._input = memoryview(input_bytes or b"")
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._open[process.stdin.fileno()] = select.POLLOUT

    @property
    def is_full(self) -> bool:
        """Whether it has written more than is read."""
        return self._left_bytes < 0

    def communicate(self, timeout_s: float | None) -> bool:
        """Return whether it has closed its pipes and ended within `timeout_s`, and written no more than is read. None waits for as long
        as it takes.

        Raises the reason when the work is cancelled; the command keeps running.
        """
        deadline = None if timeout_s is None else monotonic() + timeout_s
        while self._open:
            came = cancel.poll(self._open, _left_s(deadline))
            if not came and _is_over(deadline):
                return False
            for descriptor in came:
                self._serve(descriptor)
            if self.is_full:
                return False
        return self._is_reaped(deadline)

    def output(self) -> tuple[bytes, bytes]:
        """Return stdout and stderr so far."""
        stdout, stderr = self._output.values()
        return bytes(stdout), bytes(stderr)

    def close(self) -> None:
        """Close the pipes."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _serve(self, descriptor: int) -> None:
        if descriptor not in self._output:
            self._send(descriptor)
        elif chunk := os.read(descriptor, _CHUNK_BYTES):
            self._left_bytes -= len(chunk)
            self._output[descriptor] += chunk
            assert self._process.stdout is not None
            if self._on_line is not None and b"\n" in chunk and descriptor == self._process.stdout.fileno():
                *lines, rest = self._output[descriptor].split(b"\n")
                self._output[descriptor] = rest
                for line in lines:
                    self._on_line(bytes(line))
        else:
            del self._open[descriptor]

    def _send(self, descriptor: int) -> None:
        try:
            self._input = self._input[os.write(descriptor, self._input[:_CHUNK_BYTES]) :]
        except BrokenPipeError:  # it has closed its standard input
            self._input = memoryview(b"")
        if not self._input:
            del self._open[descriptor]
            assert self._process.stdin is not None
            self._process.stdin.close()

    def _is_reaped(self, deadline: float | None) -> bool:
        if self._process.poll() is not None:
            return True
        pidfd = os.pidfd_open(self._process.pid)
        try:
            while not cancel.poll({pidfd: select.POLLIN}, _left_s(deadline)):
                if _is_over(deadline):
                    return False
        finally:
            os.close(pidfd)
        self._process.wait()
        return True


def _left_s(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - monotonic())


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and monotonic() >= deadline


def gated(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command that waits on its standard input for a line, and then becomes `argv`."""
    return (*_SHELL, *argv)


def waits_to_become(words: Sequence[str]) -> list[str]:
    """Return the command that a waiting process with these arguments will execute; empty for other processes."""
    return list(words[len(_SHELL) :]) if tuple(words[: len(_SHELL)]) == _SHELL else []


class Gate:
    """The pipe of a process that waits for a line before it executes its program; it ends without having done so if there is none.

    What outlives Plinth is found again by its arguments, or by its program and working directory. Between fork and exec it has
    neither. So a shell is started that has the arguments already: it reads one line, which is written once the shell is there and in
    the journal, and only then executes the program, under the same pid. If Plinth dies before, the shell reads the end of the file
    and ends: at every instant the process is found, or certain to end without having done anything.
    """

    def __init__(self) -> None:
        self.theirs, self._ours = os.pipe()
        """The standard input of the process."""

    def open(self) -> None:
        """Let the process execute its program. Call it once the process exists and is in the journal."""
        os.write(self._ours, b"go\n")  # keep the read end open, so that the pipe cannot break when the process dies

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._ours)
        os.close(self.theirs)


class _Place:
    """As whom, in which folder and with which environment a command runs; `is_confined`: root starts it and it becomes the user."""

    def __init__(
        self, owner: Owner | None, cwd: Path | None, env: Mapping[str, str] | None, *, is_confined: bool = False
    ) -> None:
        self._owner = owner
        self.user_name = owner.name if owner else None
        other = owner if owner is not None and not owner.is_current_user else None
        self._cwd = cwd
        # Our working directory may not be accessible to the other user.
        self.folder = cwd or (Path("/") if other else None)
        self.env = _environment(other) | dict(env or {})
        if is_confined:
            assert other is not None, "root is never confined as itself"
            kept = (*_KEPT_WHERE_CONFINED, *other.named_in_environment(), "LC_ALL", *(env or {}))
            self.env = {name: value for name, value in self.env.items() if name in kept}
            other = None
        self.user = other.uid if other else None
        self.group = other.gid if other else None
        self.extra_groups = os.getgrouplist(other.name, other.gid) if other else None

    def check_program(self, argv: Sequence[str]) -> None:
        """Raise MissingCapability when there is no such program, or when it cannot be executed even by us."""
        program = argv[0]
        if shutil.which(program, path=self.env["PATH"]) is None:
            number = errno.EACCES if "/" in program and Path(program).exists() else errno.ENOENT
            raise self.not_started(OSError(number, os.strerror(number), program), argv)

    def not_started(self, error: OSError, argv: Sequence[str]) -> MissingCapability:
        """Return why a command could not be started."""
        command = " ".join(argv)
        if self._cwd is not None and str(error.filename) == str(self._cwd):
            return MissingCapability(f"cannot enter the working directory {self._cwd}: {error.strerror}", where=command)
        if isinstance(error, FileNotFoundError):
            return MissingCapability(f"{argv[0]}: there is no such program", where=command, hint=_hint_for(argv[0]))
        by = f" by user {self._owner.name}" if self._owner else ""
        return MissingCapability(f"{argv[0]} cannot be executed{by}: {error.strerror}", where=command)

    def not_confined(self, completed: Completed) -> MissingCapability:
        """Return why a command could not be started in its confinement."""
        reason = completed.stderr.partition(REFUSED_PREFIX)[2].splitlines()[0]
        program = completed.argv[0]
        if reason == f"{program}: {os.strerror(errno.ENOENT)}":
            return self.not_started(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program), completed.argv)
        return MissingCapability(
            f"{program} was not started as user {self.user_name}: {shown(reason)}", where=" ".join(completed.argv)
        )


def _start(
    argv: Sequence[str],
    place: _Place,
    *,
    stdin: int,
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    preexec_fn: Callable[[], None] | None = None,
    pass_fds: Collection[int] = (),
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            preexec_fn=preexec_fn,
            pass_fds=tuple(pass_fds),
            start_new_session=True,
            cwd=place.folder,
            env=place.env,
            user=place.user,
            group=place.group,
            extra_groups=place.extra_groups,
        )
    except OSError as error:
        raise place.not_started(error, argv) from error


def _environment(owner: Owner | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    # Debian leaves the folders of mount and mkfs out of an ordinary user's PATH.
    kept["PATH"] = ":".join([kept.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    kept["LC_ALL"] = "C"
    if owner is not None:
        kept |= owner.named_in_environment()
    return kept


def _hint_for(program: str) -> str | None:
    package = _DEBIAN_PACKAGES.get(program)
    return f"Debian and Ubuntu have it in package {package}" if package else None


def die_with_parent(parent_pid: int) -> None:
    """Have this process, which process `parent_pid` has just forked, killed when the thread that forked it ends.

    It ends at once when that has happened already, which no signal reports.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def _kill(process: subprocess.Popen[bytes], pipes: CommandPipes) -> None:
    """End the command and all that it started in its session, and read what it still says.

    One that hangs in the kernel, as on a disk that does not answer, ends when the disk answers: it is not waited for.
    """
    with contextlib.suppress(ProcessLookupError):  # it may end at this moment
        os.killpg(process.pid, signal.SIGKILL)
    with cancel.masked():
        pipes.communicate(_END_TIMEOUT_S)


def _ending(exit_code: int) -> str:
    return f"was ended by {signal.Signals(-exit_code).name}" if exit_code < 0 else f"failed with exit code {exit_code}"


def _tail(output: str) -> str:
    return "\n".join(output.splitlines()[-TAIL_LINES:])
