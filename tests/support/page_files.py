"""Files of tables as they lie on the disk, without what no two loads have in common."""

import struct
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

PAGE_BYTES = 8192
_HEADER_BYTES = 24
_TUPLE_XMIN = slice(0, 4)
_TUPLE_CID = slice(8, 12)


def heap_pages(first: Path) -> Iterator[bytes]:
    """Pages without LSN, checksum, and the transaction that wrote them; nor the empty ones that COPY adds in advance."""
    for page in _pages(first):
        if not any(page):
            continue
        for at, length in _items(page):
            tuple_ = page[at : at + length]
            tuple_[_TUPLE_XMIN] = tuple_[_TUPLE_CID] = bytes(4)
            page[at : at + length] = tuple_
        yield bytes(page)


def index_pages(first: Path) -> Iterator[bytes]:
    """Pages without LSN, checksum, and what remains in their free space."""
    for number, page in enumerate(_pages(first)):
        lower, upper = struct.unpack_from("<HH", page, 12)
        if number > 0:
            page[lower:upper] = bytes(upper - lower)
        yield bytes(page)


def map_pages(first: Path) -> Iterator[bytes]:
    """Pages of the visibility map."""
    for page in _pages(first.with_name(f"{first.name}_vm")):
        yield bytes(page[_HEADER_BYTES:])


def first_difference(some: Iterator[bytes], others: Iterator[bytes]) -> int | None:
    """The number of the first page that is not the same; none if all are."""
    pairs = enumerate(zip_longest(some, others))
    return next((number for number, (one, other) in pairs if one != other), None)


def _pages(first: Path) -> Iterator[bytearray]:
    """Without LSN and checksum, of all segments."""
    for segment in (first, *sorted(first.parent.glob(f"{first.name}.*"), key=lambda path: int(path.suffix[1:]))):
        with segment.open("rb") as file:
            while content := file.read(PAGE_BYTES):
                assert len(content) == PAGE_BYTES, segment
                page = bytearray(content)
                page[:10] = bytes(10)
                yield page


def _items(page: bytearray) -> list[tuple[int, int]]:
    (lower,) = struct.unpack_from("<H", page, 12)
    pointers = struct.unpack_from(f"<{(lower - _HEADER_BYTES) // 4}I", page, _HEADER_BYTES)
    return [(pointer & 0x7FFF, pointer >> 17) for pointer in pointers]
