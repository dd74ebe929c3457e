"""Torn pages are told from other failures of checksums: by the write that the disk tore, and where the file system has it."""

import os
from pathlib import Path

import pytest

from emulated_disks import ServedDisk, run
from plinth.model.disk_recording import TornWrite
from plinth.model.durability import Damage
from plinth.server.integrity.torn_pages import PAGE_BYTES, TornPage, TornPlace, torn_pages, with_torn_pages
from plinth.system.regular_file import file_extents

WRITE = TornWrite(offset=1 << 20, length=PAGE_BYTES, kept=4096)
PAGE = TornPage(file="base/5/16400.1", block=3, new_bytes=4096, lsn="0/2F3A10", write=WRITE)
BY_SERVER = 'FATAL:  invalid page in block 131075 of relation "base/5/16400"'
BY_PG_CHECKSUMS = 'pg_checksums: error: checksum verification failed in file "/d/base/5/16400.1", block 3: calculated'


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (BY_SERVER, True),
        (BY_PG_CHECKSUMS, True),
        ("2 invalid pages among blocks 131070..131080 of relation base/5/16400", True),
        ('invalid page in block 3 of relation "base/5/16400"', False),
        ('invalid page in block 131075 of relation "base/5/164001"', False),
        ('invalid page in block 1310 of relation "base/5/16400"', False),
        ('checksum verification failed in file "/d/base/5/16400.10", block 3: calculated', False),
        ('checksum verification failed in file "/d/base/5/16400", block 3: calculated', False),
    ],
)
def test_a_page_is_known_by_what_server_and_pg_checksums_say(text: str, named: bool) -> None:
    assert PAGE.is_named_by(text) is named


def test_a_torn_page_is_taken_out_of_the_checksum_failures() -> None:
    other = 'checksum verification failed in file "/d/base/5/99", block 8'
    both = Damage(kind="checksum failure", count=2, evidence=(BY_PG_CHECKSUMS, other))
    found = with_torn_pages([both], [PAGE], checksums=True, full_page_writes=True)
    assert [(damage.kind, damage.count) for damage in found] == [("checksum failure", 1), ("torn page", 1)]
    assert found[0].evidence == (other,)
    assert "base/5/16400.1, page 3" in found[1].evidence[0]
    assert "the first 4096 bytes of the page are new, of LSN 0/2F3A10, the other 4096 are old" in found[1].evidence[0]
    only = with_torn_pages([both.model_copy(update={"count": 1, "evidence": (BY_PG_CHECKSUMS,)})], [PAGE],
                           checksums=True, full_page_writes=True)  # fmt: skip
    assert [damage.kind for damage in only] == ["torn page"]


def test_a_recovery_that_is_refused_for_a_torn_page_names_both() -> None:
    refused = Damage(kind="recovery refused", count=1, evidence=("did not come up", BY_SERVER))
    found = with_torn_pages([refused], [PAGE], checksums=True, full_page_writes=False)
    assert [damage.kind for damage in found] == ["recovery refused", "torn page"]


def test_other_damage_is_no_torn_page() -> None:
    wrong = Damage(kind="checksum failure", count=1, evidence=('file "/d/base/5/99", block 8',))
    lost = Damage(kind="lost commit", count=1, evidence=("client 1",))
    assert with_torn_pages([wrong, lost], [PAGE], checksums=True, full_page_writes=True) == [wrong, lost]
    assert with_torn_pages([wrong], [], checksums=True, full_page_writes=True) == [wrong]


@pytest.mark.parametrize(
    ("full_page_writes", "kinds"), [(False, ["heap damaged", "torn page"]), (True, ["heap damaged"])]
)
def test_without_checksums_a_page_that_nothing_repaired_is_named(full_page_writes: bool, kinds: list[str]) -> None:
    damaged = Damage(kind="heap damaged", count=1, evidence=("t, page 4",))
    found = with_torn_pages([damaged], [PAGE], checksums=False, full_page_writes=full_page_writes)
    assert [damage.kind for damage in found] == kinds


def test_the_page_is_found_where_the_file_system_has_it(disk: ServedDisk) -> None:
    """A page is written; the cut tears it; the report's place leads to the file, its page, and the bytes that are old."""
    with disk.filesystem() as point:
        relation = point / "base" / "5" / "16400"
        relation.parent.mkdir(parents=True)
        relation.write_bytes(bytes(PAGE_BYTES * 4))
        (relation.parent / "16500").write_bytes(b"o" * PAGE_BYTES)
        run("sync")
        disk.control.flush_now()
        with relation.open("r+b", buffering=0) as file:
            file.seek(2 * PAGE_BYTES)
            file.write(bytes((0, 0, 0, 0, 0x10, 0x3A, 0x2F, 0)) + b"n" * (PAGE_BYTES - 8))
            os.fdatasync(file.fileno())
        (extent,) = file_extents(relation)
        assert (extent.offset, extent.length) == (0, 4 * PAGE_BYTES)
        write = TornWrite(offset=extent.device_offset + 2 * PAGE_BYTES, length=PAGE_BYTES, kept=1024)
        (page,) = torn_pages(point, [TornPlace(point, write)])
        assert (page.file, page.block, page.new_bytes, page.lsn) == ("base/5/16400", 2, 1024, "0/2F3A10")
        between = write.model_copy(
            update={"offset": extent.device_offset, "length": 4 * PAGE_BYTES, "kept": PAGE_BYTES}
        )
        assert torn_pages(point, [TornPlace(point, between)]) == []
        (other,) = file_extents(relation.with_name("16500"))
        beside = write.model_copy(update={"offset": other.device_offset})
        assert [page.file for page in torn_pages(point, [TornPlace(point, beside)])] == ["base/5/16500"]


def test_a_file_system_that_tells_no_places_has_no_torn_pages(tmp_path: Path) -> None:
    (tmp_path / "base" / "5").mkdir(parents=True)
    (tmp_path / "base" / "5" / "16400").write_bytes(bytes(PAGE_BYTES))
    assert torn_pages(tmp_path, [TornPlace(tmp_path / "gone", WRITE)]) == []
