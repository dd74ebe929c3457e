"""Recordings of emulated disks, and the images that power cuts would have left: docs/internals/disk-recording.md."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.choices import CutMode
from plinth.model.units import SizeBytes


class TornWrite(Frozen):
    """The write that a power cut tore."""

    offset: int = Field(description="Where it begins on the disk.")
    length: int
    kept: int = Field(description="How many bytes of it, from its beginning, were kept; the rest is as before it.")


class CutEffect(Frozen):
    """What a power cut does to the writes and discards that are not durable."""

    writes_dropped: int
    writes_kept: int
    writes_torn: int
    discards_dropped: int
    discards_kept: int
    sectors_dropped: int
    sectors_kept: int
    bytes_dropped: int
    bytes_kept: int
    torn_write: TornWrite | None = None


class ImageSource(Frozen):
    """An image: what a power cut at a point of a recording leaves of the disk."""

    recording: str = Field(description="The folder of the recording.")
    point: int = Field(ge=0, lt=2**63, description="How many records of it come before the cut.")
    mode: CutMode = "drop"
    seed: int = Field(default=0, ge=0, lt=2**63, description="Of the cut's choices.")
    tear_bytes: SizeBytes = Field(
        default=0,
        ge=0,
        description="A torn write is torn at a multiple of this, where it is more than the disk's atomic unit.",
    )


class ImageStatus(ImageSource):
    """The image that a daemon serves."""

    cut: CutEffect


class RecordingBase(Frozen):
    """How a recording got the disk's content at its beginning."""

    copied_by: Literal["reflink", "copy"]
    data_bytes: int
    waited_ns: int = Field(description="For how long requests to the disk waited.")


class RecordingStatus(Frozen):
    """The progress of a recording, or its size when it ended."""

    folder: str
    records: int
    data_bytes: int = Field(description="Bytes of all writes.")
    error: str | None = Field(description="Why nothing is recorded any more.")
