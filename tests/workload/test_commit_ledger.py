"""Reading a commit ledger: the format as documented, and files that no load has written."""

import re
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plinth.model.commit_ledger import COMMIT_CLASSES
from plinth.model.errors import RunError
from plinth.workload.commit_ledger import RECORD, read_commit_ledger

Record = tuple[int, int, int, int, int]


def header(
    *, thread: int = 0, threads: int = 1, version: int = 1, has_ended: int = 1, magic: bytes = b"PLINTHLG"
) -> bytes:
    return struct.pack("<8sIIIIB3xIQQ16x", magic, version, 64, 32, thread, has_ended, threads, 5, 7)


def packed(records: Sequence[Record]) -> bytes:
    return b"".join(struct.pack("<QQQIB3x", *record) for record in records)


def write(folder: Path, *contents: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for thread, content in enumerate(contents):
        (folder / f"{thread}.ledger").write_bytes(content)
    return folder


RECORDS = st.lists(
    st.tuples(
        st.integers(1, 2**63 - 1),
        st.integers(1, 2**62),
        st.integers(0, 2**62),
        st.integers(0, 2**31 - 1),
        st.integers(0, 3),
    ),
    max_size=50,
    unique_by=lambda record: (record[0], record[3]),
)


@given(records=RECORDS, at=st.integers(0, 50), unused=st.integers(0, 3))
def test_what_was_written_is_read_by_client_and_number(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record], at: int, unused: int
) -> None:
    """Of two threads, the first of which was killed and left room behind its records."""
    first, second = records[:at], records[at:]
    killed = header(threads=2, has_ended=0) + packed(first) + bytes(32 * unused)
    folder = write(tmp_path_factory.mktemp("ledger"), killed, header(thread=1, threads=2) + packed(second))
    ledger = read_commit_ledger(folder)
    expected = sorted(records, key=lambda record: (record[3], record[0]))
    names = ("number", "sent_ns", "answered_ns", "client", "class")
    assert [tuple(int(record[name]) for name in names) for record in ledger.records] == expected
    assert (ledger.has_ended, ledger.started_ns, ledger.started_unix_ns) == (False, 5, 7)
    assert sum(len(ledger.of_class(one)) for one in COMMIT_CLASSES) == len(records)


def test_the_documented_dtype_reads_a_file(tmp_path: Path) -> None:
    folder = write(tmp_path, header() + packed([(3, 10, 20, 4, 1)]))
    text = (Path(__file__).parents[2] / "docs" / "internals" / "ledger.md").read_text()
    documented = re.findall(r'\("(\w+)", "(<?\w+)"\)', text)
    assert documented == RECORD
    (record,) = np.fromfile(folder / "0.ledger", np.dtype(documented), offset=64)
    assert (record["number"], record["client"], record["class"]) == (3, 4, 1)


TWO = packed([(1, 10, 20, 0, 1), (2, 30, 40, 0, 1)])


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ((), "there is no ledger"),
        ((b"",), "does not begin with PLINTHLG"),
        ((header(magic=b"PLINTHLX") + TWO,), "does not begin with PLINTHLG"),
        ((header(version=2) + TWO,), "has format version 2; 1 can be read"),
        ((header()[:16] + struct.pack("<I", 40) + header()[20:],), "(64, 40) bytes, not (64, 32)"),
        ((header() + TWO[:-1],), "ends within a record"),
        ((header() + TWO[:32] + bytes(32) + TWO[32:],), "a hole at record 1"),
        ((header() + TWO + packed([(3, 50, 60, 0, 5)]),), "record 2 has the class 5; there are 0 to 4"),
        ((header(threads=2) + TWO,), "has 1 files; the load had 2 threads"),
        ((header(threads=2**32 - 1) + TWO,), "has 1 files; the load had 4294967295 threads"),
        ((header(threads=2), header(), header()), "has 3 files; the load had 2 threads"),
        ((header() + TWO + TWO[:32],), "client 0 has two transactions with the number 1"),
    ],
)
def test_files_that_no_load_has_written_are_refused(tmp_path: Path, contents: tuple[bytes, ...], message: str) -> None:
    with pytest.raises(RunError, match=re.escape(message)) as refused:
        read_commit_ledger(write(tmp_path / "ledger", *contents))
    assert str(tmp_path) in str(refused.value.where)
    assert refused.value.hint
