"""Pages of relations that a power cut has torn: which ones, where, and which part of each is old.

A checksum tells only that a page is wrong. The emulated disk reports the write that it tore; where the bytes of relations are
on the disk, the file system knows. So the page is known in which that write broke off.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from plinth.model.disk_recording import TornWrite
from plinth.model.durability import Damage
from plinth.system.regular_file import file_extents, open_regular_file

PAGE_BYTES = 8192
_PAGES_PER_FILE = 131_072  # files of 1 GiB
_RELATION_FILE = re.compile(r"(?P<relation>\d+(?:_[a-z]+)?)(?:\.(?P<segment>\d+))?")
_LSN = struct.Struct("=II")  # pd_lsn, at the beginning of each page (bufpage.h)
_WRONG_PAGE = ("checksum failure", "recovery refused", "server crashed")
_UNREPAIRED = ("heap damaged", "index and heap disagree", "visibility map wrong", "server crashed", "recovery refused")


class TornPlace(NamedTuple):
    """A write that a disk tore, and where the file system is mounted that is on this disk alone."""

    mount_point: Path
    write: TornWrite


class TornPage(NamedTuple):
    """A page of a relation, of which the first `new_bytes` are of the torn write and the rest is older."""

    file: str
    """Below the data directory, such as base/5/16400.1."""
    block: int
    """Its number within that file."""
    new_bytes: int
    lsn: str
    """What the header, which is in the new part, has as the LSN of the last change."""
    write: TornWrite

    @property
    def sentence(self) -> str:
        """Describe the page and the evidence."""
        return (
            f"{self.file}, page {self.block}: the disk tore its write of {self.write.length} bytes at {self.write.offset} after "
            f"{self.write.kept}: the first {self.new_bytes} bytes of the page are new, of LSN {self.lsn}, the other "
            f"{PAGE_BYTES - self.new_bytes} are old"
        )

    def is_named_by(self, text: str) -> bool:
        """Return whether a message of the server, or of pg_checksums, is about this page."""
        relation, _, segment = self.file.partition(".")
        whole = self.block + int(segment or 0) * _PAGES_PER_FILE
        of_file = re.search(rf"{re.escape(self.file)}\b(?!\.\d)", text) and _names_block(text, self.block)
        of_relation = re.search(rf"{re.escape(relation)}\b(?!\.\d)", text) and _names_block(text, whole)
        return bool(of_file or of_relation)


def _names_block(text: str, block: int) -> bool:
    ranges = re.findall(r"\bblocks? (\d+)(?:\.\.(\d+))?", text)
    return any(int(first) <= block <= int(last or first) for first, last in ranges)


def torn_pages(data_directory: Path, places: Sequence[TornPlace]) -> list[TornPage]:
    """Find the pages of relations in which one of these writes broke off; none where the file system does not report places.

    The server is stopped. Files that cannot be read are left out: what is wrong with them, other checks say.
    """
    found: list[TornPage] = []
    for place in places:
        try:
            device = place.mount_point.stat().st_dev
            for path in _relation_files(data_directory):
                if path.stat().st_dev == device:
                    found += _torn_in(path, data_directory, place.write)
        except OSError:
            continue
    return found


def _relation_files(data_directory: Path) -> Iterator[Path]:
    for folder in ("global", "base/*", "pg_tblspc/*/PG_*/*"):
        for path in data_directory.glob(f"{folder}/[0-9]*"):
            if _RELATION_FILE.fullmatch(path.name) and path.is_file():
                yield path


def _torn_in(path: Path, data_directory: Path, write: TornWrite) -> Iterator[TornPage]:
    broke_off = write.offset + write.kept
    for extent in file_extents(path):
        if not extent.device_offset < broke_off < extent.device_offset + extent.length:
            continue
        block, new_bytes = divmod(extent.offset + broke_off - extent.device_offset, PAGE_BYTES)
        if new_bytes == 0:  # between two pages, each of which is whole
            continue
        with open_regular_file(path) as file:
            file.seek(block * PAGE_BYTES)
            header = file.read(_LSN.size)
        if len(header) < _LSN.size:  # the file ended before it
            continue
        high, low = _LSN.unpack(header)
        yield TornPage(str(path.relative_to(data_directory)), block, new_bytes, f"{high:X}/{low:X}", write)


def with_torn_pages(
    damage: Sequence[Damage], pages: Sequence[TornPage], *, checksums: bool, full_page_writes: bool
) -> list[Damage]:
    """Return `damage` with torn pages distinguished from other failures of checksums.

    A server without checksums names no page. Without full-page images nothing has repaired a torn one, so that what else is
    damaged is listed next to it.
    """
    named = [page for page in pages if any(_is_about(one, page) for one in damage)]
    if not checksums and not full_page_writes and any(one.kind in _UNREPAIRED for one in damage):
        named = list(pages)
    if not named:
        return list(damage)
    left = [one for one in (_without(one, named) for one in damage) if one is not None]
    return [*left, Damage(kind="torn page", count=len(named), evidence=tuple(page.sentence for page in named))]


def _is_about(damage: Damage, page: TornPage) -> bool:
    return damage.kind in _WRONG_PAGE and any(page.is_named_by(line) for line in damage.evidence)


def _without(damage: Damage, pages: Sequence[TornPage]) -> Damage | None:
    """Return a checksum failure without these pages; other damage as it is."""
    if damage.kind != "checksum failure":
        return damage
    others = tuple(line for line in damage.evidence if not any(page.is_named_by(line) for page in pages))
    unlisted = damage.count - len(damage.evidence)
    if not others and not unlisted:
        return None
    return damage.model_copy(update={"count": len(others) + unlisted, "evidence": others or damage.evidence})
