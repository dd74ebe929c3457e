"""What people write of disks: lies, faults, physics, and the commands that take them."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from emulated_disks import MIB, ServedDisk, served
from plinth.cli import main
from plinth.model.disk import DropFraction, EioFault, Fault, IgnoreFlush, LateFlush, Lie, Physics
from plinth.storage.devices.disk_daemon import disk_profiles

LIES = TypeAdapter(Lie)
FAULTS = TypeAdapter(Fault)


@pytest.mark.parametrize(
    ("words", "lie"),
    [
        ("ignore-flush", IgnoreFlush()),
        ("late-flush", LateFlush(flushes=1)),
        ("late-flush=3", LateFlush(flushes=3)),
        ("drop-fraction=0.25", DropFraction(fraction=0.25)),
    ],
)
def test_a_lie_is_written_in_words_or_in_parts(words: str, lie: Any):
    assert LIES.validate_python(words) == lie
    assert LIES.validate_python(lie.words) == lie
    assert LIES.validate_json(lie.model_dump_json()) == lie


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("flush", EioFault(operation="flush")),
        ("write, nth=3", EioFault(operation="write", nth=3)),
        ("read,count=all", EioFault(operation="read", count=None)),
        ("read,offset=1MiB,length=512", EioFault(operation="read", offset=MIB, length=512)),
    ],
)
def test_a_fault_is_written_in_words_or_in_parts(words: str, fault: EioFault):
    assert FAULTS.validate_python(words) == fault
    assert FAULTS.validate_python(fault.words) == fault
    assert FAULTS.validate_json(fault.model_dump_json()) == fault


@pytest.mark.parametrize(
    ("adapter", "words", "message"),
    [
        (LIES, "lie", "expected \"ignore-flush\", \"late-flush=2\""),
        (LIES, "ignore-flush=1", "expected \"ignore-flush\""),
        (LIES, "late-flush=0", "greater than or equal to 1"),
        (LIES, "drop-fraction=1.5", "less than or equal to 1"),
        (FAULTS, "trim", "'read', 'write' or 'flush'"),
        (FAULTS, "read,often", "expected nth=, count=, offset= or length="),
        (FAULTS, "read,nth=0", "greater than or equal to 1"),
        (FAULTS, "read,offset=5 parsecs,length=1", "unknown unit 'parsecs'"),
        (FAULTS, "read,offset=512", "offset and length go together"),
        (FAULTS, "flush,offset=0,length=512", "a flush has no place"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_reported(adapter: TypeAdapter[Any], words: str, message: str):
    with pytest.raises(ValidationError) as error:
        adapter.validate_python(words)
    assert message in str(error.value)


def test_physics_take_peoples_units_and_refuse_others():
    found = Physics.model_validate({"read_latency": "4.2ms", "read_bandwidth": "180MB/s", "cache_size": "64MiB"})
    assert found == Physics(read_latency=4_200_000, read_bandwidth=180_000_000, cache_size=64 * MIB)
    assert Physics.model_validate({"atomic_write_size": "8KiB"}).atomic_write_bytes == 8192
    for key, value in (
        ("read_latency", "4.2"),
        ("read_bandwidth", "180MB"),
        ("channels", 0),
        ("speed", 1),
        ("atomic_write_size", 1024),
    ):
        with pytest.raises(ValidationError):
            Physics.model_validate({key: value})


def test_every_profile_names_all_of_its_numbers_and_their_sources():
    profiles = disk_profiles()
    assert [profile.name for profile in profiles] == [
        "hdd-7200", "hdd-10k-sas", "sata-ssd", "pcie-ssd-2012", "cloud-volume",
        "gp2-100", "gp3", "io2-16k", "azure-p4", "azure-p6", "azure-p10", "azure-p15", "azure-p20", "azure-premium-v2",
        "hyperdisk-balanced", "essd-pl1-100", "essd-pl2-500", "essd-pl3-1300", "nvme", "ideal",
    ]  # fmt: skip
    for profile in profiles:
        assert None not in profile.physics.model_dump().values()
        assert profile.sources


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set", "/nowhere", "flush_latncy=8ms"], "unknown key 'flush_latncy'; allowed: read_latency, write_latency"),
        (["set", "/nowhere", "flush_latency"], "not of the form key=value"),
        (["set", "/nowhere", "read_bandwidth=fast"], "expected a size a second"),
        (["set", "/nowhere", "atomic_write_size=2KiB"], "allowed are 512, 4096, 8192 and 16384 bytes"),
        (["fault", "/nowhere", "read,nth=x"], "nth: got 'x'"),
        (["fault", "/nowhere", "--lie", "white"], "--lie: got 'white'"),
        (["profiles", "hdd-10k"], "no profile 'hdd-10k'; there are hdd-7200, hdd-10k-sas"),
    ],
)
def test_bad_words_are_usage_errors_and_nobody_is_asked(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["disk", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_daemon_that_is_not_there_is_a_failure(capsys: pytest.CaptureFixture[str]):
    assert main(["disk", "status", "/nowhere"]) == 1
    assert "the emulated disk's daemon is not running" in capsys.readouterr().err


def test_a_session_by_hand(disk: ServedDisk, capsys: pytest.CaptureFixture[str]):
    control = disk.config.control

    def said(*words: str) -> str:
        assert main(["disk", *words]) == 0
        return capsys.readouterr().out

    assert "flush_latency     8 ms" in said("set", control, "flush_latency=8ms", "read_iops=500")
    assert "fault: read,nth=2,count=1: seen 0, fired 0" in said("fault", control, "read,nth=2", "--lie", "late-flush")
    shown = said("status", control)
    assert "plinth-test-disk: ideal, 256.0 MiB, power on" in shown
    assert "lie: late-flush=1" in shown
    assert "read_iops         500" in shown
    assert "lie: none" in said("fault", control, "--clear", "--lie", "none")
    assert json.loads(said("cut", control, "--mode", "prefix", "--seed", "4"))["writes_dropped"] == 0
    assert json.loads(said("status", control, "--json"))["power"] == "off"
    said("power-on", control)
    assert said("flush-now", control) == "0\n"


def test_all_that_the_command_line_says_reaches_the_disk(scratch: Path):
    physics = {
        "read_latency": "1ms",
        "spread": 0.5,
        "cache_protected": False,
        "channels": 3,
        "write_bandwidth": "9MB/s",
        "atomic_write_size": "16KiB",
    }
    with served(scratch, "sata-ssd", seed=77, physics=physics) as disk:
        found = disk.control.status()
    assert (found.profile, found.seed) == ("sata-ssd", 77)
    asked = disk.config.physics.model_dump(exclude_none=True)
    assert {key: value for key, value in found.physics.model_dump().items() if key in asked} == asked
