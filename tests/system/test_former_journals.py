"""A journal that an earlier Plinth wrote is undone by this one: its lines and the undo state next to them are kept as they were.

`journals/version-3.jsonl` are entries as version 3 of the journal first had them, for a tmpfs, a loop device with a changed queue and
a zram device. What they name is made here by plain commands.
"""

import json
import subprocess
from pathlib import Path

from disks import wait_for_detached
from leftovers import nothing_left
from plinth.run.undo import UNDO_HANDLERS
from plinth.system.clean import clean
from plinth.system.paths import ensure, journal_dir, work_dir
from plinth.system.process import boot_id

ENTRIES = Path(__file__).parent / "journals" / "version-3.jsonl"
LABEL = "plinth-old1"
READ_AHEAD_KB = 64


def command(*argv: str | Path) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def labelled(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / ".plinth-label").write_text(f"{LABEL}\nMade by Plinth, and removed by it: plinth clean\n")
    return folder


def formatted(device: Path, label: str, point: Path) -> None:
    point.mkdir()
    command("mkfs.ext4", "-q", "-L", label, device)
    command("mount", "-t", "ext4", device, point)
    labelled(point)


def make_tmpfs(work: Path) -> None:
    folder = labelled(work / f"{LABEL}-t")
    command("mount", "-t", "tmpfs", "-o", "size=8388608", LABEL, folder)
    labelled(folder)


def make_loop(work: Path) -> Path:
    """Returns the knob that is changed, whose former value is added to the undo state."""
    folder = labelled(work / f"{LABEL}-l")
    command("truncate", "-s", "64M", folder / "image")
    device = Path(command("losetup", "--show", "-f", folder / "image"))
    (folder / "device").symlink_to(device)
    formatted(device, "plc9eb617731", folder / "mount")
    knob = Path("/sys/block") / device.name / "queue/read_ahead_kb"
    state = {"boot_id": boot_id(), "queue": str(knob.parent), "former": {"read_ahead_kb": knob.read_text().strip()}}
    (folder / "saved").mkdir()
    (folder / "saved/queue-device.json").write_text(json.dumps(state))
    knob.write_text(str(READ_AHEAD_KB))
    return knob


def make_zram(work: Path) -> Path:
    folder = labelled(work / f"{LABEL}-z")
    name = f"zram{Path('/sys/class/zram-control/hot_add').read_text().strip()}"
    device = Path("/dev") / name
    sysfs = Path("/sys/block") / name
    (sysfs / "disksize").write_text(str(2**25))
    (folder / "device").symlink_to(device)
    formatted(device, "pl7e657288f1", folder / "mount")
    (folder / "saved").mkdir()
    state = {"boot_id": boot_id(), "name": name, "diskseq": int((sysfs / "diskseq").read_text())}
    (folder / "saved/zram-device.json").write_text(json.dumps(state))
    return sysfs


def first_line() -> str:
    """That the run was one of a process that is dead, on this machine and of this boot."""
    process = subprocess.Popen(["true"])
    process.wait()
    host = Path("/proc/sys/kernel/hostname").read_text().strip()
    owner = {"pid": process.pid, "started_ticks": 1, "boot_id": boot_id(), "host": host}
    return json.dumps({"journal": 3, "run_id": "old1", **owner})


def test_what_an_earlier_plinth_left_is_undone(state_dir: Path, scratch: Path) -> None:
    work = ensure(work_dir())
    with nothing_left(scratch):
        make_tmpfs(work)
        knob = make_loop(work)
        zram = make_zram(work)
        read_ahead_kb = json.loads((work / f"{LABEL}-l/saved/queue-device.json").read_text())["former"]["read_ahead_kb"]
        assert read_ahead_kb != str(READ_AHEAD_KB)
        entries = ENTRIES.read_text().replace("WORK", str(work))
        (ensure(journal_dir()) / "old1.jsonl").write_text(f"{first_line()}\n{entries}")

        result = clean(UNDO_HANDLERS)

        error = result.error()
        assert error is None, error.details
        assert len(result.runs[0].undone) == len(entries.splitlines())
        assert list(work.iterdir()) == []
        assert not zram.exists()
        wait_for_detached(knob.parents[1])
        assert knob.read_text().strip() == read_ahead_kb
        assert list(journal_dir().iterdir()) == []
