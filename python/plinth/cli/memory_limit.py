"""Ends a command in one sentence where the process may not have the memory that it needs, such as under `ulimit -v`.

Python then raises MemoryError anywhere, and libraries raise what they like, or end the process: OpenBLAS exits, and a thread of the
native module aborts. What is raised is recognised here. For libraries that would end the process, it is checked before they are
loaded whether they have room.
"""

import errno
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from plinth import exit_codes

_NEEDED_BYTES = {
    "pydantic_core": 48 * 2**20,
    "plinth._native": 64 * 2**20,
    "numpy": 512 * 2**20,
    "duckdb": 512 * 2**20,
    "pyarrow": 512 * 2**20,
}
"""Address space that must be free before a library is loaded: for its code, and for the threads that it starts, each of which has a
stack and reserves 64 MiB for its allocations (M_ARENA_MAX of mallopt(3))."""
_NEEDED_BY_RUNS_BYTES = 1536 * 2**20
"""Address space that the smallest run needs: that of all these libraries, and of the threads that load and observe."""
_RUNS = ("run", "resume")
_LIMITS = {resource.RLIMIT_AS: "ulimit -v", resource.RLIMIT_DATA: "ulimit -d"}
_NO_MEMORY = (
    "cannot allocate memory",
    "failed to map segment",
    "can't start new thread",
    "resource temporarily unavailable",
    "out of memory",
    "memory allocation",
)
_NUMBERS = (errno.ENOMEM, errno.EAGAIN)


class _Finder:
    """Finds no module, but raises where one that was asked for has no room. Stands before all other finders (sys.meta_path)."""

    def find_spec(
        self, name: str, path: "Sequence[str] | None", target: "ModuleType | None" = None
    ) -> ModuleSpec | None:
        """Raise MemoryError if the library `name` has no room; else leave it to the other finders."""
        needed = _NEEDED_BYTES.get(name)
        if needed is not None and (free := _free_bytes()) is not None and free < needed:
            raise _no_room(name, needed, free)
        return None


def watch_memory_limit(command: str | None) -> None:
    """Check the room of libraries from now on; nothing where this process has no limit. Raises MemoryError for a run that has no room:
    otherwise it would fail only when it needs the last of the libraries, after its trials.
    """
    if command in _RUNS and (free := _free_bytes()) is not None and free < _NEEDED_BY_RUNS_BYTES:
        raise _no_room(f"plinth {command}", _NEEDED_BY_RUNS_BYTES, free)
    if _limits():
        import threading

        os.environ.setdefault(
            "OPENBLAS_NUM_THREADS", "1"
        )  # else numpy needs more address space, the more processors there are
        sys.meta_path.insert(0, _Finder())
        print_as_usual = threading.excepthook

        def show(failed: "threading.ExceptHookArgs") -> None:
            if failed.exc_value is not None and is_lack_of_memory(failed.exc_value):
                show_lack_of_memory(failed.exc_value)
            else:
                print_as_usual(failed)

        threading.excepthook = show


def is_lack_of_memory(error: BaseException) -> bool:
    """Return whether an error, or one that it came of, is that there is not enough memory for the process, its threads or its children."""
    return any(_lacks_memory(one) for one in _chain(error))


def show_lack_of_memory(error: BaseException) -> int:
    """Print one sentence and a hint to stderr, and return the exit code. Allocates little, and needs no stream of Python's."""
    said = next((str(one) for one in _chain(error) if _lacks_memory(one) and str(one)), "")
    reason = "".join(letter if letter.isprintable() else "?" for letter in said.partition("\n")[0])
    limits = ", ".join(f"{name} allows {size // 1024} KiB" for name, size in _limits())
    lines = ["error: not enough memory for this command" + (f": {reason}" if reason else "")]
    lines.append(
        "  hint: "
        + (f"raise the limit of this process: {limits}" if limits else "free some memory, or raise what limits it")
    )
    lines.append("  hint: if a run was under way, `plinth clean` undoes what it made")
    os.write(2, ("\n".join(lines) + "\n").encode(errors="replace"))
    return exit_codes.MISSING


def _no_room(name: str, needed_bytes: int, free_bytes: int) -> MemoryError:
    return MemoryError(
        f"{name} needs {needed_bytes // 2**20} MiB of address space, and {max(0, free_bytes) // 2**20} MiB are free"
    )


def _limits() -> list[tuple[str, int]]:
    found = [(name, resource.getrlimit(limit)[0]) for limit, name in _LIMITS.items()]
    return [(name, size) for name, size in found if size != resource.RLIM_INFINITY]


def _free_bytes() -> int | None:
    """Return how much address space the limit leaves (proc_pid_statm(5)); None without a limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    with open("/proc/self/statm") as file:  # noqa: PTH123 - pathlib is not imported for this
        return limit - int(file.read().split()[0]) * resource.getpagesize()


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    left: BaseException | None = error
    while left is not None and left not in seen:
        yield left
        seen.append(left)
        left = left.__cause__ or left.__context__


def _lacks_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError) and error.errno in _NUMBERS:
        return True
    is_raised_by_libraries = isinstance(error, (ImportError, RuntimeError, OSError)) or type(error).__module__ in (
        "duckdb",
        "_duckdb",
        "pyo3_runtime",
    )
    return is_raised_by_libraries and any(words in str(error).lower() for words in _NO_MEMORY)
