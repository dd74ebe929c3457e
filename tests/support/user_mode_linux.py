"""A Linux kernel of the tests' own, as an ordinary process: for drivers that the machine's kernel may not have.

Inside, the machine's files are seen as they are, Plinth, its Python and PostgreSQL among them, and everything that is written
goes to memory and is gone at the end. How: docs/internals/user-mode-linux.md.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import plinth
from servers import server_folder

ROOT = Path(__file__).resolve().parents[2]
_LETTERS = "abcdefgh"  # the driver's own limit is eight disks

_INIT = ROOT / "tests" / "support" / "user_mode_linux.sh"
_PTRACE = ROOT / "tests" / "support" / "user_mode_linux.c"


class Disk(NamedTuple):
    """A disk of the guest: /dev/ubda for the first, and so on. `serial` is in /sys/block/ubda/serial."""

    size_bytes: int
    serial: str = ""


class Ended(NamedTuple):
    """How a command inside ended, with all that came over the guest's console."""

    exit_code: int
    output: str


class Hung(AssertionError):
    """The guest did not end in time; with all that came over its console."""


def run_inside(
    argv: Sequence[str],
    *,
    disks: Sequence[Disk] = (),
    modules: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    memory_mb: int = 1536,
    timeout_s: float = 180,
    name: str = "guest",
) -> Ended:
    """Run `argv` as root in its own guest, with kernel `modules` loaded, in the folder of this repository.

    Raises AssertionError with the console's output when the guest does not end, Hung when it does not in time.
    """
    with server_folder() as folder:
        command = folder / "command"
        command.write_text(_command(argv, modules, env or {}))
        command.chmod(0o755)
        files = [_disk_file(folder / f"disk-{letter}", disk) for letter, disk in zip(_LETTERS, disks, strict=False)]
        kernel = [
            "linux.uml",
            f"mem={memory_mb}M",
            *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={_INIT}"),
            *("con=null", "con0=null,fd:1", "quiet", "loglevel=2", f"uml_dir={folder}", f"umid={name}"),
            *(f"ubd{letter}={file}" for letter, file in zip(_LETTERS, files, strict=False)),
            *(f"OUTSIDE={folder}", f"SPACE_MB={memory_mb * 2 // 3}"),
        ]
        console, in_time = _boot(kernel, folder, timeout_s)
        exit_code = folder / "exit_code"
        if not in_time:
            raise Hung(f"the guest took longer than {timeout_s} s and was ended:\n{console}")
        assert exit_code.exists(), f"the guest ended without an exit status of its command:\n{console}"
        return Ended(int(exit_code.read_text()), console)


def check_inside(*tests: str, disks: Sequence[Disk] = (), modules: Sequence[str] = (), timeout_s: float = 180) -> None:
    """Run pytest on `tests`, paths in this repository or options, inside; fails with its output unless all of them passed.

    A guest that does not end in time is started once more: on a busy machine user-mode-linux itself stops now and then. A
    hang of ours comes back.
    """
    plugins = ["-p", "no:cacheprovider", "-p", "pytest_timeout"]  # looking for more takes seconds in there

    def run() -> Ended:
        return run_inside(
            [sys.executable, "-m", "pytest", "--color=no", *plugins, *tests],
            disks=disks,
            modules=modules,
            env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            timeout_s=timeout_s,
        )

    try:
        ended = run()
    except Hung as error:
        print(f"started once more: {error}")
        ended = run()
    assert ended.exit_code == 0, f"pytest inside user-mode-linux ended with {ended.exit_code}:\n{ended.output}"


def _command(argv: Sequence[str], modules: Sequence[str], env: Mapping[str, str]) -> str:
    inside = {
        "HOME": "/root",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": str(Path(plinth.__file__).parents[1]),
        "LC_ALL": "C.UTF-8",
        **env,
    }
    return "\n".join(
        [
            "#!/bin/sh",
            "set -e",
            *(f"export {name}={shlex.quote(value)}" for name, value in inside.items()),
            *(f"modprobe {module}" for module in modules),
            f"cd {shlex.quote(str(ROOT))}",
            f"exec {shlex.join(argv)} </dev/null",
        ]
    )


def _boot(kernel: list[str], folder: Path, timeout_s: float) -> tuple[str, bool]:
    """What came over the console, and whether the kernel ended in time; it and its processes are gone afterwards."""
    assert shutil.which(kernel[0]), "the tests need Debian's package user-mode-linux: scripts/test-deps.sh"
    # The kernel and the process that it traces wait for one another: on one CPU they need a third less of it.
    on_one_cpu = ["taskset", "--cpu-list", str(max(os.sched_getaffinity(0)))]
    process = subprocess.Popen(
        [*on_one_cpu, *kernel],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"TMPDIR": str(folder)} | _preloaded(folder),  # TMPDIR is where it keeps the guest's memory
        start_new_session=True,
    )
    try:
        output, in_time = process.communicate(timeout=timeout_s)[0], True
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, in_time = process.communicate()[0], False
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return output.decode(errors="replace").replace("\r\n", "\n"), in_time


def _preloaded(folder: Path) -> dict[str, str]:
    """What has user-mode-linux call our ptrace(2), on a processor on which it needs it."""
    if "amx_tile" not in Path("/proc/cpuinfo").read_text():
        return {}
    library = folder / "ptrace.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, _PTRACE], check=True)
    return {"LD_PRELOAD": str(library)}


def _disk_file(path: Path, disk: Disk) -> str:
    with path.open("wb") as file:
        file.truncate(disk.size_bytes)
    return f"{path},,{disk.serial}" if disk.serial else str(path)
