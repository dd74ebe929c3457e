"""Reads recordings of emulated disks: their points, and when each was reached."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from plinth import _native
from plinth.model.choices import CutMode
from plinth.model.disk_recording import ImageSource
from plinth.storage.devices.disk_process import as_plinth_error

if TYPE_CHECKING:  # numpy takes a while, and most runs record nothing
    import numpy as np
    from numpy.typing import NDArray

_WRITE, _DISCARD, _DISCARD_AT_ONCE = 1, 2, 3  # as docs/internals/disk-recording.md numbers the kinds of records
_FLUSH = 6


class Recording(NamedTuple):
    """A recording of one disk. Point k is the disk after the first k records: from 0, the base, to `last_point`."""

    folder: Path
    size_bytes: int
    """The size of the disk."""
    began_ns: int
    """The begin by CLOCK_MONOTONIC, which `time.monotonic_ns` reads too."""
    is_complete: bool
    """Whether it was stopped. Otherwise it is not known what followed its last record."""
    times_ns: "NDArray[np.int64]"
    """The time of each record, ascending."""
    kinds: "NDArray[np.uint8]"
    """The kind of each record."""

    @property
    def last_point(self) -> int:
        """The disk after all records."""
        return len(self.times_ns)

    def point_at(self, time_ns: int) -> int:
        """Return the point at a time of CLOCK_MONOTONIC: with every record that was made until then."""
        import numpy as np

        return int(np.searchsorted(self.times_ns, time_ns, side="right"))

    def time_ns(self, point: int) -> int:
        """Return when the point was reached, by CLOCK_MONOTONIC."""
        return int(self.times_ns[point - 1]) if point else self.began_ns

    def flush_points(self) -> "NDArray[np.int64]":
        """Return the points just after a flush was answered, also by a disk that lies."""
        import numpy as np

        return np.flatnonzero(self.kinds == _FLUSH) + 1

    def change_points(self) -> "NDArray[np.int64]":
        """Return the points just after a write or discard."""
        import numpy as np

        return np.flatnonzero(np.isin(self.kinds, (_WRITE, _DISCARD, _DISCARD_AT_ONCE))) + 1

    def image(self, point: int, mode: CutMode = "drop", seed: int = 0, tear_bytes: int = 0) -> ImageSource:
        """Return the image that a power cut at a point leaves."""
        return ImageSource(recording=str(self.folder), point=point, mode=mode, seed=seed, tear_bytes=tear_bytes)


def read_recording(folder: Path, *, verify: bool = True) -> Recording:
    """Return the recording in `folder`; with `verify`, every byte of its data is read and checked.

    One that was cut short, as by a full file system or kill -9, is read up to its last whole record. Raises Refused
    for a recording that is damaged elsewhere or of another version, and for a folder that holds none.
    """
    import numpy as np

    try:
        properties, times, kinds = _native.read_disk_recording(str(folder), verify)
    except _native.DiskError as error:
        hint = "name the folder that was given to `plinth disk record`; what is damaged must be recorded again"
        raise as_plinth_error(error, "read the recording", folder, hint) from error
    return Recording(
        folder=folder,
        **json.loads(properties),
        times_ns=np.frombuffer(times, np.int64),
        kinds=np.frombuffer(kinds, np.uint8),
    )
