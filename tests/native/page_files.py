"""Files of tables as they lie on the disk, without what no two loads have in common."""

import struct
from pathlib import Path

PAGE_BYTES = 8192
_HEADER_BYTES = 24
_TUPLE_XMIN = slice(0, 4)
_TUPLE_CID = slice(8, 12)


def heap_pages(first: Path) -> list[bytes]:
    """Pages without LSN, checksum, and the transaction that wrote them; nor the empty ones that COPY adds in advance."""
    pages = []
    for page in _pages(first):
        if not any(page):
            continue
        for at, length in _items(page):
            tuple_ = page[at : at + length]
            tuple_[_TUPLE_XMIN] = tuple_[_TUPLE_CID] = bytes(4)
            page[at : at + length] = tuple_
        pages.append(bytes(page))
    return pages


def index_pages(first: Path) -> list[bytes]:
    """Pages without LSN, checksum, and what remains in their free space."""
    pages = []
    for number, page in enumerate(_pages(first)):
        lower, upper = struct.unpack_from("<HH", page, 12)
        if number > 0:
            page[lower:upper] = bytes(upper - lower)
        pages.append(bytes(page))
    return pages


def map_pages(first: Path) -> list[bytes]:
    """Pages of the visibility map."""
    return [bytes(page[_HEADER_BYTES:]) for page in _pages(first.with_name(f"{first.name}_vm"))]


def _pages(first: Path) -> list[bytearray]:
    """Without LSN and checksum, of all segments."""
    segments = [first, *sorted(first.parent.glob(f"{first.name}.*"), key=lambda path: int(path.suffix[1:]))]
    pages = []
    for segment in segments:
        content = segment.read_bytes()
        assert len(content) % PAGE_BYTES == 0, segment
        for at in range(0, len(content), PAGE_BYTES):
            page = bytearray(content[at : at + PAGE_BYTES])
            page[:10] = bytes(10)
            pages.append(page)
    return pages


def _items(page: bytearray) -> list[tuple[int, int]]:
    (lower,) = struct.unpack_from("<H", page, 12)
    pointers = struct.unpack_from(f"<{(lower - _HEADER_BYTES) // 4}I", page, _HEADER_BYTES)
    return [(pointer & 0x7FFF, pointer >> 17) for pointer in pointers]
