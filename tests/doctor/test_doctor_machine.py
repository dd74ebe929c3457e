"""Each check of the machine, on machines made of files: good, bad, and unreadable."""

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fabricated import (
    CLOCK,
    CPU,
    DMI,
    GOOD,
    HUGE_PAGES,
    MEMINFO,
    NOTHING,
    OWN_PID,
    THP,
    UNREADABLE,
    Files,
    machine,
    process,
    write,
)
from plinth.doctor import MACHINE_CHECKS, Machine, examine
from plinth.model.doctor import Finding, Remedy

DIRTY = "/proc/sys/vm/dirty_"
BY_RATIO: Files = {
    f"{DIRTY}background_bytes": "0",
    f"{DIRTY}bytes": "0",
    f"{DIRTY}background_ratio": "10",
    f"{DIRTY}ratio": "20",
}


def findings(root: Path, files: Files = NOTHING, later: Files = NOTHING) -> list[Finding]:
    examination = examine(machine(root, files, later), ())
    assert not examination.gaps
    return list(examination.findings)


def worst(root: Path, check: str, files: Files, later: Files = NOTHING) -> Finding:
    """What the check of this id found that is not ok; nothing else may have changed for it."""
    (found,) = (one for one in findings(root, files, later) if one.id == check and one.severity != "ok")
    return found


def test_of_a_good_machine_all_is_well(tmp_path: Path) -> None:
    found = findings(tmp_path)
    assert {one.severity for one in found} == {"ok"}
    assert {one.id for one in found} == {check.id for check in MACHINE_CHECKS}
    assert all(fact.source for one in found for fact in one.readings)
    assert not any(str(tmp_path) in one.model_dump_json() for one in found)


BAD: list[tuple[str, Files, Files, str, str, str, str]] = [
    # check, what is there, what is there later, severity, words, command that corrects it, command that sets it back
    (
        "cpu.governor",
        {f"{CPU}/cpu2/cpufreq/scaling_governor": "powersave"},
        {},
        "warning",
        "performance on 3, powersave on 1 of 4",
        f"echo performance | sudo tee {CPU}/cpu*/cpufreq/scaling_governor",
        f"echo powersave | sudo tee {CPU}/cpu2/cpufreq/scaling_governor",
    ),
    (
        "cpu.turbo",
        {f"{CPU}/intel_pstate/no_turbo": "0"},
        {},
        "note",
        "turbo is on",
        f"echo 1 | sudo tee {CPU}/intel_pstate/no_turbo",
        f"echo 0 | sudo tee {CPU}/intel_pstate/no_turbo",
    ),
    (
        "cpu.turbo",
        {f"{CPU}/intel_pstate/no_turbo": None, f"{CPU}/cpufreq/boost": "1"},
        {},
        "note",
        "turbo is on",
        f"echo 0 | sudo tee {CPU}/cpufreq/boost",
        f"echo 1 | sudo tee {CPU}/cpufreq/boost",
    ),
    (
        "cpu.clock",
        {f"{CLOCK}/current_clocksource": "hpet"},
        {},
        "warning",
        "hpet, though tsc is available",
        f"echo tsc | sudo tee {CLOCK}/current_clocksource",
        f"echo hpet | sudo tee {CLOCK}/current_clocksource",
    ),
    (
        "cpu.clock",
        {f"{CLOCK}/current_clocksource": "hpet", f"{CLOCK}/available_clocksource": "hpet acpi_pm"},
        {},
        "warning",
        "considers it unstable",
        "",
        "",
    ),
    ("cpu.clock", {f"{CLOCK}/current_clocksource": "kvm-clock"}, {}, "note", "the hypervisor's clock", "", ""),
    (
        "cpu.clock",
        {f"{CLOCK}/current_clocksource": "xen", f"{CLOCK}/available_clocksource": "xen"},
        {},
        "warning",
        "xen",
        "",
        "",
    ),
    ("cpu.quota", {"/sys/fs/cgroup/cpu.max": "150000 100000\n"}, {}, "warning", "to 1.5 processors", "", ""),
    (
        "memory.transparent_huge_pages",
        {THP: "[always] madvise never"},
        {},
        "warning",
        "always",
        f"echo madvise | sudo tee {THP}",
        f"echo always | sudo tee {THP}",
    ),
    (
        "memory.huge_pages",
        {"/proc/meminfo": MEMINFO.format(available=12000000, swap=0, free=0) + HUGE_PAGES.format(total=512, free=128)},
        {},
        "note",
        "1.0 GiB of memory are reserved as huge pages, and 256.0 MiB of it are free",
        "sudo sysctl -w vm.nr_hugepages=0",
        "sudo sysctl -w vm.nr_hugepages=512",
    ),
    (
        "memory.dirty",
        {**BY_RATIO, "/proc/meminfo": MEMINFO.format(available=15728640, swap=0, free=0)},
        {},
        "note",
        "1.5 GiB of dirty pages",
        "sudo sysctl -w vm.dirty_background_bytes=268435456 vm.dirty_bytes=1073741824",
        "sudo sysctl -w vm.dirty_background_ratio=10 vm.dirty_ratio=20",
    ),
    (
        "memory.dirty",
        {f"{DIRTY}background_bytes": str(9 * 2**30), f"{DIRTY}bytes": str(20 * 2**30)},
        {},
        "warning",
        "9.0 GiB of dirty pages",
        "sudo sysctl -w vm.dirty_background_bytes=268435456 vm.dirty_bytes=1073741824",
        f"sudo sysctl -w vm.dirty_background_bytes={9 * 2**30} vm.dirty_bytes={20 * 2**30}",
    ),
    (
        "memory.free",
        {"/proc/meminfo": MEMINFO.format(available=800000, swap=0, free=0)},
        {},
        "warning",
        "(5 %)",
        "",
        "",
    ),
    (
        "memory.free",
        {"/proc/meminfo": MEMINFO.format(available=160000, swap=0, free=0)},
        {},
        "problem",
        "(1 %)",
        "",
        "",
    ),
    (
        "memory.free",
        {
            "/sys/fs/cgroup/memory.max": "1073741824",
            "/sys/fs/cgroup/memory.current": "536870912",
            "/sys/fs/cgroup/memory.stat": "inactive_file 0\n",
        },
        {},
        "note",
        "512.0 MiB of 1.0 GiB memory are available (50 %), by a control group's limit",
        "",
        "",
    ),
    ("neighbours.load", {"/proc/loadavg": "1.2 0 0 1/2 3"}, {}, "note", "1-minute load average 1.2", "", ""),
    ("neighbours.load", {"/proc/loadavg": "2.5 0 0 1/2 3"}, {}, "warning", "load average 2.5", "", ""),
    (
        "neighbours.steal",
        {},
        {"/proc/stat": "cpu  1090 0 500 9000 10 0 10 5 0 0\n"},
        "warning",
        "took 5.3 % of",
        "",
        "",
    ),
    (
        "neighbours.steal",
        {},
        {"/proc/stat": "cpu  1050 0 500 9000 10 0 10 50 0 0\n"},
        "problem",
        "took 50.0 % of",
        "",
        "",
    ),
    (
        "virtual.io_limit",
        {"/sys/fs/cgroup/io.max": "8:0 rbps=1000000 wbps=max riops=max wiops=250\n7:1 rbps=max wbps=max\n"},
        {},
        "warning",
        "device 8:0 to 1 MB/s read, device 8:0 to 250 writes/s",
        "",
        "",
    ),
    ("virtual.container", {"/.dockerenv": ""}, {}, "note", "(docker)", "", ""),
    ("virtual.container", {"/proc/1/cgroup": "0::/kubepods/besteffort/x\n"}, {}, "note", "(kubepods)", "", ""),
    (
        "virtual.hypervisor",
        {"/proc/cpuinfo": "flags\t: fpu hypervisor\n"},
        {},
        "note",
        "(Dell Inc. PowerEdge R750)",
        "",
        "",
    ),
    ("virtual.hypervisor", {"/sys/hypervisor/type": "xen"}, {}, "note", "(xen)", "", ""),
    (
        "virtual.credits",
        {f"{DMI}/sys_vendor": "Amazon EC2", f"{DMI}/product_name": "t4g.large"},
        {},
        "warning",
        "Amazon EC2 (t4g.large)",
        "",
        "",
    ),
    (
        "virtual.credits",
        {f"{DMI}/sys_vendor": "Amazon EC2", f"{DMI}/product_name": "m7i.large"},
        {},
        "note",
        "gp2 volumes below 1,000 GiB",
        "",
        "",
    ),
    (
        "virtual.credits",
        {f"{DMI}/sys_vendor": "Microsoft Corporation", f"{DMI}/chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"},
        {},
        "note",
        "B sizes have CPU credits",
        "",
        "",
    ),
    (
        "virtual.credits",
        {f"{DMI}/sys_vendor": "Google", f"{DMI}/product_name": "Google Compute Engine"},
        {},
        "note",
        "shared-core types",
        "",
        "",
    ),
    (
        "kernel.version",
        {"/proc/sys/kernel/osrelease": "5.4.0-150-generic"},
        {},
        "note",
        "does not count the flushes",
        "",
        "",
    ),
]


@pytest.mark.parametrize(("check", "files", "later", "severity", "words", "fix", "undo"), BAD)
def test_what_would_spoil_a_measurement_is_found(
    tmp_path: Path, check: str, files: Files, later: Files, severity: str, words: str, fix: str, undo: str
) -> None:
    found = worst(tmp_path, check, files, later)
    assert (found.severity, found.about) == (severity, "machine")
    assert words in found.saw
    assert found.why
    assert found.readings
    commands = found.remedy.commands if found.remedy else ()
    assert commands == ((fix,) if fix else ())
    if fix:
        assert found.remedy is not None
        assert undo in found.remedy.undo


def test_an_old_kernel_may_lose_an_error_and_counts_no_flushes(tmp_path: Path) -> None:
    found = [
        one
        for one in findings(tmp_path, {"/proc/sys/kernel/osrelease": "3.10.0-1160.el7"})
        if one.id == "kernel.version"
    ]
    assert [one.severity for one in found] == ["warning", "note"]


@pytest.mark.parametrize(
    ("swap_kib", "free_kib", "severities"),
    [(2000000, 2000000, ["ok", "note"]), (2000000, 1000000, ["warning", "note"]), (2000000, 1950000, ["ok", "note"])],
)
def test_swap_is_judged_by_what_is_in_use_of_it(
    tmp_path: Path, swap_kib: int, free_kib: int, severities: list[str]
) -> None:
    meminfo = MEMINFO.format(available=12000000, swap=swap_kib, free=free_kib)
    found = [one for one in findings(tmp_path, {"/proc/meminfo": meminfo}) if one.id == "memory.swap"]
    assert [one.severity for one in found] == severities


def test_a_busy_process_is_named_and_ours_are_not(tmp_path: Path) -> None:
    before = {
        **process(200, "backup (job)", 1, 0),
        **process(OWN_PID + 1, "mkfs", OWN_PID, 0),
        **process(300, "kworker", 2, 0),
    }
    later = {
        **process(200, "backup (job)", 1, 5000),
        **process(OWN_PID + 1, "mkfs", OWN_PID, 7000),
        **process(300, "kworker", 2, 9000),
    }
    found = worst(tmp_path, "neighbours.processes", before, later)
    assert found.severity == "problem"
    assert "backup (job) (pid 200)" in found.saw
    assert "kworker (pid 300)" in found.saw
    assert "mkfs" not in found.saw
    assert found.remedy is not None
    assert (found.remedy.commands, found.remedy.undo) == ((), ())
    assert "backup (job) (pid 200)" in (found.remedy.advice or "")
    assert "300" not in (found.remedy.advice or "")  # nobody waits for a thread of the kernel's


def quietened(root: Path, *busy: dict[str, str | None], files: Files = NOTHING) -> Remedy:
    """What is said to do about processes that take the whole machine, each after the one before."""
    began = {
        path: (stat or "").replace(" 5000 0 0 0 20", " 0 0 0 0 20") for each in busy for path, stat in each.items()
    }
    later = {path: stat for each in busy for path, stat in each.items()}
    remedy = worst(root, "neighbours.processes", {**files, **began}, later).remedy
    assert remedy is not None
    return remedy


def test_a_busy_service_is_stopped_as_a_service(tmp_path: Path) -> None:
    groups = {"/proc/200/cgroup": "0::/system.slice/cron.service\n", "/proc/201/cgroup": "0::/system.slice/cron.service\n",
              "/proc/202/cgroup": "12:cpu:/\n1:name=systemd:/system.slice/web@a\\x2db.service\n"}  # fmt: skip
    remedy = quietened(
        tmp_path,
        process(200, "cron", 1, 5000),
        process(201, "job", 200, 5000),
        process(202, "web", 1, 5000),
        files=groups,
    )
    stop, start = remedy.commands[0], remedy.undo[0]
    assert set(shlex.split(stop)) == {"sudo", "systemctl", "stop", "cron.service", "web@a\\x2db.service"}
    assert start == stop.replace(" stop ", " start ")
    assert remedy.advice is None


@pytest.mark.parametrize(
    ("busy", "cgroup"),
    [
        (process(1, "systemd", 0, 5000), "0::/init.scope"),
        (process(1, "process_api", 0, 5000), "0::/system.slice/api.service"),
        (process(90, "bash", 1, 5000), "0::/system.slice/ssh.service"),  # our parent, see below
        (process(200, "systemd-journal", 1, 5000), "0::/system.slice/systemd-journald.service"),
        (process(200, "dbus-daemon", 1, 5000), "0::/system.slice/dbus.service"),
        (process(200, "sshd", 1, 5000), "0::/system.slice/ssh.service"),
        (process(200, "containerd-shim", 1, 5000), "0::/system.slice/containerd.service"),
        (process(200, "apt-get", 1, 5000), "0::/system.slice/apt-daily.service"),
        (process(200, "dpkg", 1, 5000), "0::/"),
        (process(200, "unattended-upgr", 1, 5000), "0::/system.slice/unattended-upgrades.service"),
        ({**process(199, "apt-get", 1, 0), **process(200, "mandb", 199, 5000)}, "0::/system.slice/apt-daily.service"),
        (process(200, "firefox", 1, 5000), "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service"),
        (process(200, "job", 1, 5000), "0::/system.slice/ours.service"),  # Plinth's own service
        (process(2, "kthreadd", 0, 5000), "0::/"),
    ],
    ids=lambda value: value.rpartition("/")[2] if isinstance(value, str) else "",
)
def test_what_the_machine_lives_on_is_never_stopped(tmp_path: Path, busy: dict[str, str | None], cgroup: str) -> None:
    pids = [path.split("/")[2] for path in busy]
    files = {f"/proc/{pid}/cgroup": f"{cgroup}\n" for pid in pids} | {
        f"/proc/{OWN_PID}/cgroup": "0::/system.slice/ours.service\n"
    }
    ours = process(OWN_PID, "python", 90, 100)
    parent = {} if "/proc/90/stat" in busy else process(90, "bash", 1, 0)
    remedy = quietened(tmp_path, busy, files={**files, **ours, **parent})
    assert (remedy.commands, remedy.undo) == ((), ())
    assert "wait" in (remedy.advice or "")
    assert "kill" not in (remedy.advice or "")


def test_zombies_are_counted_once_with_their_parents(tmp_path: Path) -> None:
    files = {path: stat for pid in range(400, 430) for path, stat in process(pid, "postgres", 1, 10, "Z").items()}
    files |= process(390, "bash", 1, 0) | process(430, "postgres", 390, 10, "Z")
    found = worst(tmp_path, "neighbours.postgresql", files)
    assert found.severity == "note"
    assert "(zombies): 31, of systemd (pid 1) 30, bash (pid 390) 1" in found.saw


def test_another_postgresql_is_named_with_its_data_directory(tmp_path: Path) -> None:
    files = {
        **process(400, "postgres", 1, 10),
        **process(401, "postgres", 400, 10),
        **process(410, "postgres", OWN_PID, 10),
    }
    (tmp_path / "proc/400").mkdir(parents=True)
    (tmp_path / "proc/400/cwd").symlink_to("/srv/pg data")
    found = worst(tmp_path, "neighbours.postgresql", files)
    assert "(pid 400) on /srv/pg data" in found.saw
    assert found.remedy is not None
    assert found.remedy.commands[0].endswith("pg_ctl stop -D '/srv/pg data' -m fast")
    assert found.remedy.undo[0].endswith("pg_ctl start -D '/srv/pg data'")


def test_where_an_external_server_is_measured_one_that_runs_is_no_neighbour(tmp_path: Path) -> None:
    made = replace(machine(tmp_path, process(400, "postgres", 1, 10)), measures_a_server=True)
    (found,) = (one for one in examine(made, ()).findings if one.id == "neighbours.postgresql")
    assert (found.severity, found.remedy) == ("note", None)
    assert "may be the one that is measured" in found.saw


def test_another_postgresql_whose_directory_may_not_be_seen_is_reported(tmp_path: Path) -> None:
    found = worst(tmp_path, "neighbours.postgresql", process(400, "postgres", 1, 10))
    assert "/proc/400/cwd: No such file" in found.saw


def test_the_load_of_before_our_own_work_counts(tmp_path: Path) -> None:
    busy = machine(tmp_path, {"/proc/loadavg": "2.5 0 0 1/2 3"})
    for load_average, severity in (("0.10 0.20 0.30 1/2 3", "ok"), (None, "warning")):
        found = examine(replace(busy, load_average=load_average), ()).findings
        assert [one.severity for one in found if one.id == "neighbours.load"] == [severity]


def test_a_shared_memory_as_small_as_a_containers_is_named(scratch: Path) -> None:
    place = scratch / "dev/shm"
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", place], check=True)
    try:
        found = worst(scratch, "memory.shared", {})
    finally:
        subprocess.run(["umount", place], check=True)
    assert (found.severity, found.saw) == ("warning", "/dev/shm has 64.0 MiB")
    assert found.remedy is not None and "--shm-size=1g" in (found.remedy.advice or "")


NEEDED = [
    ("frequency governor", {f"{CPU}/cpu0/cpufreq/scaling_governor": UNREADABLE}),
    ("frequency governor", {f"{CPU}/cpu{n}/cpufreq/scaling_governor": None for n in range(4)}),
    ("turbo", {f"{CPU}/intel_pstate/no_turbo": None}),
    ("clock source", {f"{CLOCK}/current_clocksource": UNREADABLE}),
    ("limit of CPU time", {"/proc/self/cgroup": None}),
    ("limit of CPU time", {"/sys/fs/cgroup/cpu.max": "nonsense"}),
    ("transparent huge pages", {THP: None}),
    ("transparent huge pages", {THP: "always"}),
    ("huge pages", {"/proc/meminfo": "MemTotal: 5 kB\n"}),
    ("swap", {"/proc/meminfo": None}),
    ("swap", {"/proc/meminfo": "SwapTotal: many kB\n"}),
    ("limits of dirty pages", {f"{DIRTY}ratio": "x"}),
    ("memory that is available", {"/proc/meminfo": "MemTotal: 5 kB\n"}),
    ("load average", {"/proc/loadavg": ""}),
    ("load average", {f"{CPU}/online": "?"}),
    ("CPU time of other processes", {f"{CPU}/online": None}),
    ("stolen time", {"/proc/stat": None}),
    ("stolen time", {"/proc/stat": "intr 1 2 3\n"}),
    ("stolen time", {"/proc/stat": GOOD["/proc/stat"]}),  # no time has passed
    ("hypervisor", {"/proc/cpuinfo": "CPU part : 0xd40\n"}),
    ("container", {"/proc/1/cgroup": None}),
    ("limit of I/O", {"/sys/fs/cgroup/io.max": "8:0 rbps=much\n"}),
    ("shared memory", {"/dev/shm/segment": None}),
    ("burst credits", {f"{DMI}/sys_vendor": None}),
    ("kernel", {"/proc/sys/kernel/osrelease": "?"}),
]


@pytest.mark.parametrize(("what", "files"), NEEDED)
def test_what_cannot_be_read_is_a_gap_with_its_reason(tmp_path: Path, what: str, files: Files) -> None:
    examination = examine(machine(tmp_path, files), ())
    (gap,) = (one for one in examination.gaps if one.what == f"machine: {what}")
    assert gap.reason
    assert str(tmp_path) not in gap.reason


def test_of_a_machine_without_proc_and_sys_all_is_gaps(tmp_path: Path) -> None:
    examination = examine(Machine.watched(0, tmp_path, OWN_PID), ())
    assert not examination.findings
    assert {gap.what for gap in examination.gaps} == {f"machine: {check.what}" for check in MACHINE_CHECKS}


@pytest.mark.parametrize("how", ["hidepid=2", "hidepid=1"])
def test_processes_that_are_hidden_are_gaps_and_no_proof_of_quiet(scratch: Path, in_child, how: str) -> None:
    """A user who sees the own processes only: the others have no folder, or one whose files are closed."""

    def look() -> tuple[list[str], dict[str, str]]:
        examination = examine(Machine.watched(0, scratch, OWN_PID), ())
        return [one.id for one in examination.findings], {gap.what: gap.reason for gap in examination.gaps}

    write(scratch, GOOD if how == "hidepid=1" else {**GOOD, "/proc/1/stat": None, "/proc/1/cgroup": None})
    if how == "hidepid=1":
        (scratch / "proc/1/stat").chmod(0)
    found, gaps = in_child(look, "nobody" if os.geteuid() == 0 else None).value
    assert not {"neighbours.processes", "neighbours.postgresql"} & set(found)
    for what in ("CPU time of other users' processes", "PostgreSQL servers of other users"):
        assert "hidepid" in gaps[f"machine: {what}"]
