"""LazyFS's case of PostgreSQL (https://github.com/dsrhaslab/lazyfs): the power goes while one page is written. A real server on
an emulated disk: the page that a checkpoint writes is torn at 4096 bytes, always the same one."""

import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from emulated_disks import MIB, served
from plinth.model.disk_recording import ImageSource, TornWrite
from plinth.model.plan import Variant
from plinth.model.server_spec import ServerSpec
from plinth.model.workload import WorkloadSpec
from plinth.run.faults.power import PowerLoss
from plinth.run.faults.recovery_check import Findings, name_torn_pages, start_server
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.installations.find import find_installation
from plinth.server.integrity.amcheck import check_checksums, check_database
from plinth.server.integrity.torn_pages import PAGE_BYTES, TornPlace
from plinth.server.layout import ServerLayout
from plinth.server.server import LocalServer
from plinth.storage.devices.disk_recording import read_recording
from plinth.system.database import connect_unpinned
from plinth.system.directory import make_directory
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import server_owner
from plinth.system.regular_file import file_extents
from plinth.system.runner import Runner

SEEDS = range(64)
HEADER_BYTES = RECORD_BYTES = 64
WRITE = 1
SIZE_BYTES = 512 * MIB


@pytest.fixture
def journal(scratch: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PLINTH_STATE_DIR", str(scratch / "state"))
    opened = Journal.create(f"test-{os.getpid()}", UNDO_HANDLERS)
    yield opened
    opened.close()


def recorded(folder: Path, journal: Journal, settings: dict[str, bool]) -> tuple[ServerLayout, Path, str, int]:
    """A table of one page is updated, and a checkpoint writes it, while its disk is recorded: the layout of the server, where it
    is mounted, the file of the table below the data directory, and where its page is on the disk."""
    owner, runner = server_owner(), Runner()
    with served(folder, "sata-ssd", SIZE_BYTES) as disk, disk.filesystem() as point:
        make_directory(point / "storage", journal.label, owner)
        layout = ServerLayout(
            journal.run_id,
            "torn",
            find_installation(18, None, owner, runner),
            owner,
            ServerSpec(),
            point / "storage" / "data",
            LogFile(folder / "server.log"),
        )
        cluster = LocalServer(layout, runner, journal)
        cluster.initdb()
        cluster.start({**settings, "autovacuum": False})
        with connect_unpinned(cluster.connection) as control:
            control.execute("CREATE TABLE t AS SELECT id, repeat('o', 180) payload FROM generate_series(1, 15) id")
            control.execute("CHECKPOINT")
            row = control.execute("SELECT pg_relation_filepath('t')").fetchone()
            assert row is not None
            (folder / "recording").mkdir()
            disk.control.start_recording(folder / "recording")
            control.execute("UPDATE t SET payload = repeat('n', 180)")
            control.execute("CHECKPOINT")
            disk.control.stop_recording()
        cluster.crash()
        (extent, *_) = file_extents(layout.data_directory / str(row[0]))
        return layout, point, str(row[0]), extent.device_offset


def point_after_write(recording: Path, page_offset: int) -> int:
    """The point just after the last write of the page, by the records (docs/internals/disk-recording.md)."""
    data = (recording / "records").read_bytes()
    found = 0
    for number, at in enumerate(range(HEADER_BYTES, len(data), RECORD_BYTES), start=1):
        kind = data[at + 4]
        offset, length = struct.unpack_from("<QQ", data, at + 24)
        if kind == WRITE and offset <= page_offset < offset + length:
            found = number
    assert found, "the page was written"
    return found


def torn_image(folder: Path, overlays: Path, page_offset: int) -> tuple[ImageSource, TornWrite]:
    """The image in which the write of the page was torn: other seeds tear other writes that are not durable yet."""
    recording = read_recording(folder / "recording")
    point = point_after_write(recording.folder, page_offset)
    for seed in SEEDS:
        image = recording.image(point, "torn", seed, 4096)
        at = overlays / str(seed)
        at.mkdir()
        with served(at, "sata-ssd", SIZE_BYTES, image=image) as disk:
            status = disk.control.status().image
        assert status is not None
        torn = status.cut.torn_write
        if torn is not None and torn.offset <= page_offset < torn.offset + torn.kept < page_offset + PAGE_BYTES:
            return image, torn
    raise AssertionError("no seed tears the page")


@pytest.mark.long
@pytest.mark.parametrize(
    ("full_page_writes", "kinds"), [(False, ["recovery refused", "torn page"]), (True, [])], ids=["without", "with"]
)
def test_one_torn_page_is_named_without_full_page_images_and_repaired_with_them(
    scratch: Path, journal: Journal, full_page_writes: bool, kinds: list[str]
) -> None:
    scratch.chmod(0o755)
    settings = {"full_page_writes": full_page_writes}
    folder, overlays = scratch / "disk", scratch / "images"
    folder.mkdir()
    overlays.mkdir()
    layout, point, file, page_offset = recorded(folder, journal, settings)
    source, torn = torn_image(folder, overlays, page_offset)
    variant = Variant(id="v", label="v", levels={}, cluster="c", settings=dict(settings),
                      workload=WorkloadSpec(builtin="tpcb-like"), scripts=())  # fmt: skip
    image = scratch / "image"
    image.mkdir()
    found = Findings()
    with served(image, "sata-ssd", SIZE_BYTES, image=source) as disk, disk.filesystem(made=True) as mounted:
        data = mounted / layout.data_directory.relative_to(point)
        cluster = LocalServer(
            replace(layout, data_directory=data, log=LogFile(image / "server.log")), Runner(), journal
        )
        found.lost = PowerLoss(("disk",), (), (TornPlace(mounted, torn),))
        if start_server(cluster, {**settings, "autovacuum": False}, found):
            with connect_unpinned(cluster.connection) as control:
                found.add(check_database(control, 18))
                row = control.execute("SELECT count(*) FROM t WHERE payload = repeat('n', 180)").fetchone()
                assert row == (15,), "the update was acknowledged"
            cluster.shutdown()
            found.add(check_checksums(cluster.layout, layout.installation, Runner(), enabled=True))
        name_torn_pages(found, cluster.files(), variant)
        cluster.crash()
    assert [damage.kind for damage in found.damage] == kinds
    for damage in found.damage[1:]:
        assert damage.evidence[0].startswith(f"{file}, page 0: the disk tore its write of")
        assert "the first 4096 bytes of the page are new, of LSN 0/" in damage.evidence[0]
        assert "the other 4096 are old" in damage.evidence[0]
