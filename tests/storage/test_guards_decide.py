"""The decision alone: from facts and wishes to reasons, without a machine."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plinth.storage.devices.block_device import Identity, Signature
from plinth.storage.guards import DeviceState, RequestedDevice, reasons_against
from plinth.storage.guards.uses import NotExamined, Use

REQUESTED = RequestedDevice("/dev/disk/by-id/nvme-A_S4EVNF0M", "S4EVNF0M", 480_000_000_000)
FREE = DeviceState(
    id=REQUESTED.id,
    name="nvme0n1",
    is_partition=False,
    identity=Identity("259:0", 480_103_981_056, "S4EVNF0M", 7),
    model="A",
    read_only=False,
)
UNSEEN = (NotExamined("open files of process 1 (init)", "Permission denied"),)
EXT4 = Signature("ext4", 1080, "root", None)


def guards(
    state: DeviceState, requested: RequestedDevice = REQUESTED, destroy: tuple[str, ...] = ("EVNF0M",)
) -> list[str]:
    return [reason.guard for reason in reasons_against(state, requested, destroy)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"is_partition": True}, ["partition"]),
        ({"read_only": True}, ["read-only"]),
        ({"holders": (Use("nvme0n1", "md0"), Use("nvme0n1p1", "dm-3"))}, ["holder", "holder"]),
        ({"uses": (Use("nvme0n1p2", "ext4 on /boot"),)}, ["use"]),
        ({"ancestors": (Use("nvme0n1p3", "/"),)}, ["ancestor"]),
        ({"claimed": "the kernel says that the device is in use"}, ["claim"]),
        ({"signatures": (("nvme0n1", EXT4),), "blank_ends": False}, ["signature"]),
        ({"partitions": ("nvme0n1p1",), "blank_ends": False}, ["signature"]),
        ({"blank_ends": False}, []),
        ({"unseen": UNSEEN}, []),
        ({"unseen": UNSEEN, "blank_ends": False}, ["unseen"]),
        ({"identity": FREE.identity._replace(serial=None)}, ["serial"]),
        ({"identity": FREE.identity._replace(serial="s4evnf0m")}, ["serial"]),
        ({"identity": FREE.identity._replace(size_bytes=512_110_190_592)}, ["size"]),
        ({"identity": FREE.identity._replace(size_bytes=0)}, ["size"]),
    ],
)
def test_each_fact_has_its_reason(change: dict, expected: list[str]) -> None:
    assert guards(replace(FREE, **change)) == expected


@pytest.mark.parametrize(
    ("serial", "word"), [("S4EVNF0M512345", "512345"), ("123456", "123456"), ("QM1", "QM1"), ("WD-WX 12 34", " 12 34")]
)
def test_the_word_is_the_end_of_the_serial(serial: str, word: str) -> None:
    assert RequestedDevice(REQUESTED.id, serial, 1).word == word


@given(st.lists(st.text(max_size=12)))
def test_no_other_word_will_do(words: list[str]) -> None:
    given_right = "EVNF0M" in words
    assert guards(FREE, destroy=tuple(words)) == ([] if given_right else ["word"])


@given(st.integers(min_value=0, max_value=10**13))
def test_only_sizes_within_one_percent_are_the_size(size_bytes: int) -> None:
    state = replace(FREE, identity=FREE.identity._replace(size_bytes=size_bytes))
    within = abs(size_bytes - REQUESTED.size_bytes) <= REQUESTED.size_bytes // 100
    assert guards(state) == ([] if within else ["size"])


def test_every_reason_has_a_text_and_a_hint() -> None:
    state = DeviceState(
        id=REQUESTED.id,
        name="sda1",
        is_partition=True,
        identity=Identity("8:1", 5, None, None),
        model=None,
        read_only=True,
        partitions=("sda1",),
        holders=(Use("sda1", "md0"),),
        uses=(Use("sda1", "swap"),),
        signatures=(("sda1", EXT4),),
        ancestors=(Use("sda1", "/"),),
        claimed="in use",
        blank_ends=False,
        unseen=UNSEEN,
    )
    reasons = reasons_against(state, REQUESTED, ())
    assert len({reason.guard for reason in reasons}) == 11
    assert all(reason.text and reason.hint for reason in reasons)
    assert reasons[-1].hint == "if everything on it may go: --destroy EVNF0M"
