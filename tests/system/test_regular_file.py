"""What another user puts in the place of a file that root reads: a link is not followed, a FIFO holds nobody up."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from plinth.server.integrity.pages import RelationFile, page_lsns
from plinth.system.drop_caches import resident_bytes
from plinth.system.failures import WrongFile
from plinth.system.regular_file import (
    MOST_TEXT_BYTES,
    check_regular_if_there,
    file_extents,
    open_output,
    open_regular_file,
    read_given,
    read_small_file,
)
from special_files import endless_device, seeing_opens, sparse, unix_socket

PAGE = bytes(4) + (0x1234).to_bytes(4, "little") + bytes(8184)


def lsns(path: Path) -> list[int]:
    return page_lsns(path.parent, RelationFile(1, "planted", "r", "heap", path.name, 0)).tolist()


READERS = (read_small_file, lsns, lambda path: list(file_extents(path)), resident_bytes)


def link(path: Path) -> None:
    target = path.with_name("target")
    target.write_bytes(PAGE)
    path.symlink_to(target)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("plant", [link, os.mkfifo, os.mkdir])
@pytest.mark.timeout(10)
def test_what_is_no_regular_file_is_refused_at_once(
    tmp_path: Path, plant: Callable[[Path], None], reader: Callable[[Path], object]
) -> None:
    plant(tmp_path / "planted")
    with pytest.raises(OSError, match=r"regular file|symbolic links|directory"):
        reader(tmp_path / "planted")


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "planted"
    path.write_bytes(PAGE)
    assert read_small_file(path) == PAGE and read_small_file(path, 4) == bytes(4)
    assert lsns(path) == [0x1234]
    assert resident_bytes(path) == len(PAGE)


def given(path: Path) -> object:
    return read_given(path)


def written(path: Path) -> object:
    return open_output(path)


@pytest.mark.parametrize("function", [given, written, check_regular_if_there])
@pytest.mark.parametrize("plant", [os.mkfifo, unix_socket, endless_device, os.mkdir])
@pytest.mark.timeout(10)
def test_what_is_no_file_is_refused_before_it_is_opened(
    tmp_path: Path, plant: Callable[[Path], None], function: Callable[[Path], object]
) -> None:
    plant(tmp_path / "planted")
    for path in (tmp_path / "planted", tmp_path / "link"):
        if path.name == "link":
            path.symlink_to("planted")
        with seeing_opens(path) as was_opened:
            with pytest.raises(WrongFile, match="not a regular file"):
                function(path)
            assert not was_opened()
    with seeing_opens(tmp_path) as was_opened:  # the control: an open is seen
        os.close(os.open(tmp_path, os.O_RDONLY))
        assert was_opened()


@pytest.mark.parametrize(
    "name", ["/proc/self/mem", "/proc/kmsg", "/proc/self/environ", "/sys/kernel/mm/transparent_hugepage/enabled"]
)
def test_an_answer_of_the_kernel_is_no_file(name: str) -> None:
    with pytest.raises(WrongFile, match="an answer of the kernel's"):
        read_given(name)


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    sparse(tmp_path / "sparse")
    with pytest.raises(WrongFile, match="larger than 16 MiB"):
        read_given(tmp_path / "sparse")
    with pytest.raises(WrongFile, match="larger than 16 MiB"):
        check_regular_if_there(tmp_path / "sparse", MOST_TEXT_BYTES)


def test_what_a_shell_hands_over_is_read_and_written() -> None:
    """As `<(command)`, `>(command)`, /dev/stdin and /dev/stdout, which lead to descriptors that the process has from its start."""
    reading, writing = os.pipe()
    os.write(writing, b"token")
    with pytest.raises(OSError, match="a FIFO"):
        open_regular_file(
            f"/dev/fd/{reading}", follow_links=True
        )  # what an experiment names is nothing that was handed over
    with open_output(f"/dev/fd/{writing}") as file:
        file.write(b"-more")
    os.close(writing)
    assert read_given(f"/proc/self/fd/{reading}") == b"token-more"
    os.close(reading)
    with open_output("/dev/null") as file:
        file.write(b"lost")


def test_an_output_that_is_there_is_written_from_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("longer than what follows")
    (tmp_path / "link").symlink_to("new")
    for name in ("there", "new", "link"):
        with open_output(tmp_path / name) as file:
            file.write(b"short")
        assert (tmp_path / name).read_text() == "short"


def test_a_file_that_is_exchanged_while_it_is_opened_is_not_opened(tmp_path: Path) -> None:
    """A link that leads to a file and to a FIFO in turns: it is read, or refused, and never waited for."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").write_text("x")
    ended = threading.Event()

    def exchange() -> None:
        while not ended.is_set():
            for name in ("fifo", "file"):
                (tmp_path / f"{name}.link").symlink_to(name)
                (tmp_path / f"{name}.link").rename(tmp_path / "given")

    exchanging = threading.Thread(target=exchange)
    (tmp_path / "given").symlink_to("file")
    exchanging.start()
    seen = set[object]()
    try:
        with seeing_opens(tmp_path / "fifo") as was_opened:
            while len(seen) < 2:
                try:
                    seen.add(read_given(tmp_path / "given"))
                except WrongFile as error:
                    seen.add(error.strerror)
            for _ in range(2000):
                try:
                    assert read_given(tmp_path / "given") == b"x"
                except WrongFile:
                    continue
            assert not was_opened()
    finally:
        ended.set()
        exchanging.join()
