"""`plinth doctor`: examine this machine and a directory, and measure the machine's noise."""

import stat
from collections.abc import Sequence
from pathlib import Path

from plinth.doctor import WORKS, ExaminedPlace, Machine, Slot, examine, measure_slots, unreachable
from plinth.model.base import Gap
from plinth.model.doctor import Examination, Noise
from plinth.model.errors import PlinthError, UsageError
from plinth.storage import describe
from plinth.system.failures import from_os_error
from plinth.system.paths import work_dir
from plinth.system.timeout import call_with_timeout

WINDOW_S = 1.0
"""How long neighbours are watched."""
NOISE_BLOCKS = 10
_MIN_SLOT_S = 0.02
MIN_NOISE_S = 2 * len(WORKS) * NOISE_BLOCKS * _MIN_SLOT_S
_SEED = 1


def default_place() -> Path:
    """Return where Plinth makes storages of which no path is given, or the nearest folder above that is there."""
    place = work_dir()
    return next(folder for folder in (place, *place.parents) if folder.is_dir())


def examine_path(path: Path) -> Examination:
    """Examine this machine and the directory `path`.

    Raises UsageError when there is no such directory. One that cannot be looked at for another reason is a finding.
    """
    places, lost = [], []
    try:
        _check_directory(path)
        places.append(ExaminedPlace(describe(path)))
    except UsageError:
        raise
    except PlinthError as error:
        lost.append(unreachable(str(path), error.message, error.hint))
    return examine(Machine.watched(WINDOW_S), places, lost)


def measure_noise(path: Path, duration_s: float) -> Noise:
    """Return how much fixed work varies on this machine and in the directory `path`, which is written to."""
    from plinth.analyse.noise_floor import work_noise  # statistics, whose libraries are slow to load

    if duration_s < MIN_NOISE_S:
        raise UsageError(f"too short to measure noise: {duration_s:g} s", hint=f"give at least {MIN_NOISE_S:g} s")
    _check_directory(path)
    slot_s = duration_s / (2 * len(WORKS) * NOISE_BLOCKS)
    try:
        measured = measure_slots(path, NOISE_BLOCKS, slot_s, _SEED)
    except OSError as error:
        raise from_os_error(error, "measure the noise", path) from error
    gaps = []
    if measured.through_cache is not None:
        gaps.append(
            Gap(what="reads past the page cache", reason=f"{measured.through_cache}; reads came from the cache")
        )
    works = (work_noise(work, what, _sides(work, measured.slots), _SEED) for work, what in WORKS.items())
    return Noise(path=str(path), blocks=NOISE_BLOCKS, slot_s=slot_s, works=tuple(works), gaps=tuple(gaps))


def _sides(work: str, slots: Sequence[Slot]) -> tuple[dict[int, float], dict[int, float]]:
    """Return the rates by block on both sides of one work."""
    a, b = ({slot.block: slot.rate_per_s for slot in slots if (slot.work, slot.side) == (work, side)} for side in "AB")
    return a, b


def _check_directory(path: Path) -> None:
    try:
        is_directory = stat.S_ISDIR(call_with_timeout(path.stat, path).st_mode)
    except OSError as error:
        raise from_os_error(error, "look at it", path) from error
    if not is_directory:
        raise UsageError("it is not a directory", where=str(path), hint=f"name the folder: plinth doctor {path.parent}")
