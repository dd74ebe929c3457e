"""What tests and all that they start have around them, however they were started: signals, environment, umask, limits, folder.

Under nohup(1), in the background of a script, without a terminal, by sudo(8) or with variables of libpq's, a test would otherwise test
something else. A test that is about one of these sets it for the process that it starts.
"""

import os
import pwd
import resource
import signal
import tempfile
from pathlib import Path

from public_folder import PUBLIC

ROOT = Path(__file__).resolve().parents[2]
_KEPT = {"PATH", "USER", "LOGNAME", "SHELL", "TZ", "VIRTUAL_ENV", "OPENBLAS_NUM_THREADS", "CARGO_HOME", "RUSTUP_HOME"}
_KEPT_PREFIXES = ("PLINTH_TEST", "PLINTH_FUZZ_", "PLINTH_INTERRUPTS", "PYTEST_")
_OF_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}
"""Python ignores them itself, and restores them in what it starts."""
_NOT_SET = {signal.SIGKILL, signal.SIGSTOP}
_OPEN_FILES = 1024


def pin_surroundings() -> None:
    """Give this process, and by that all that it starts, the same surroundings however it was started."""
    _pin_signals()
    _pin_environment()
    os.umask(0o022)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _OPEN_FILES <= hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, hard))
    os.chdir(ROOT)


def _pin_signals() -> None:
    """Block no signal, and ignore none: what is started inherits both (signal(7))."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - _OF_PYTHON - _NOT_SET:
        if signal.getsignal(number) != signal.SIG_IGN:
            continue
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)
        elif number == signal.SIGHUP:
            # Ignored by a function, which no other program inherits: these tests still outlive their terminal.
            signal.signal(number, lambda number, frame: None)
        else:
            signal.signal(number, signal.SIG_DFL)


def _pin_environment() -> None:
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
    os.environ.clear()
    os.environ.update(kept)
    # A path of a socket has 107 bytes at most, and servers run as users who may enter public folders only.
    os.environ |= {"TMPDIR": str(PUBLIC), "HOME": _home(), "LANG": "C.UTF-8"}
    tempfile.tempdir = None  # as kept from the environment of before


def _home() -> str:
    """Return this user's home directory by the system's list of users, or a public folder where nothing can be written there."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    return str(home if os.access(home, os.W_OK | os.X_OK) else PUBLIC)
