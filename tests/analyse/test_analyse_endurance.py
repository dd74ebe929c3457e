"""What a run writes and how long a drive lasts: the arithmetic, on bundles whose every byte is given."""

from dataclasses import replace
from typing import Any

import pytest

from analyse_bundles import SECOND_NS, bundle, storage_facts, trial
from plinth.analyse import analyse
from plinth.analyse.endurance import DAY_S, endurance, life_years
from plinth.analyse.postgres_writes import postgres_writes
from plinth.analyse.window import measured_phase
from plinth.model.base import Gap
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.endurance import DriveSpec, Rating, VariantEndurance
from plinth.model.facts import StackNode
from plinth.model.storage import ZfsStorage
from plinth.model.trial import DeviceIo, Event, Sample
from plinth.report.sections.endurance import written_caveats
from sampled import by_metric

MB, GB, TB = 10**6, 10**9, 10**12
WRITTEN_PER_TRANSACTION = {"wal": 4000, "wal_written": 10_000, "data": 3000}


@pytest.mark.parametrize(
    ("given", "rated_bytes", "bytes_per_s", "years"),
    [
        # The published worked example: 300 GB x 5,000 cycles = 1,500 TB; at 3 MB/s, ~95 TB a year, about 15 years.
        ({"pe_cycles": 5000, "capacity_bytes": 300 * GB}, 1500 * TB, 3 * MB, 15.8),
        ({"pe_cycles": 3000, "capacity_bytes": 240 * GB}, 720 * TB, 3 * MB, 7.6),
        ({"pe_cycles": 3000, "capacity_bytes": 240 * GB, "waf": 2.0}, 360 * TB, 3 * MB, 3.8),
        ({"tbw_bytes": 600 * TB}, 600 * TB, 3 * MB, 6.3),
    ],
)
def test_life_from_what_a_drive_is_rated_for(
    given: dict[str, Any], rated_bytes: int, bytes_per_s: int, years: float
) -> None:
    rating = DriveSpec(**given).rating()
    assert rating.rated_bytes == rated_bytes
    assert f"{rated_bytes / TB:,.0f} TB" in rating.source
    assert life_years(rating.rated_bytes, bytes_per_s * DAY_S) == pytest.approx(years, abs=0.05)


def test_three_megabytes_a_second_are_95_terabytes_a_year() -> None:
    assert pytest.approx(95, abs=0.5) == 3 * MB * DAY_S * 365.25 / TB


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"tbw": 5, "pe_cycles": 6, "capacity": 7},
        {"tbw": 5, "capacity": 7},
        {"pe_cycles": 6},
        {"capacity": "300GB"},
        {"tbw": 5, "waf": 2},
    ],
    ids=str,
)
def test_a_rating_that_does_not_fit_together_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="capacity"):
        DriveSpec.model_validate(given)


@pytest.mark.parametrize("waf", [float("inf"), float("nan")])
def test_a_factor_without_bounds_is_refused(waf: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        DriveSpec.model_validate({"pe_cycles": 6, "capacity": "300GB", "waf": waf})


def test_the_drive_that_the_experiment_states_is_that_of_the_analysis_unless_another_is_given() -> None:
    contents = one_disk(100, 100, 100)
    drive = DriveSpec(tbw=600 * TB)
    experiment = contents.plan.experiment.model_copy(update={"drive": drive})
    contents = replace(contents, plan=contents.plan.model_copy(update={"experiment": experiment}))
    analysis = analyse(contents)
    assert analysis.rating == drive.rating()
    (account,) = (variant.endurance for variant in analysis.variants)
    assert account == only(contents)
    assert account is not None and account.devices[1].life_years is not None
    assert account.devices[1].life_years.value == pytest.approx(600 * TB / (20_000 * 100 * DAY_S * 365.25))
    other = only(contents, rating=Rating(rated_bytes=60 * TB, source="given")).devices[1].life_years
    assert other is not None and other.value == pytest.approx(account.devices[1].life_years.value / 10)


V13 = {
    ("pg_checkpointer", "all", "buffers_written"): 10,
    ("pg_bgwriter", "all", "buffers_clean"): 20,
    ("pg_bgwriter", "all", "buffers_backend"): 30,
    ("pg_wal", "all", "insert_lsn_bytes"): 900_000,
}
V14 = {**V13, ("pg_wal", "all", "wal_bytes"): 800_000, ("pg_wal", "all", "wal_fpi"): 50}
V17 = {
    ("pg_io", "checkpointer/relation/normal", "write_bytes"): 81_920,
    ("pg_io", "client backend/relation/normal", "write_bytes"): 8192,
    ("pg_io", "client backend/relation/bulkwrite", "extend_bytes"): 16_384,
    ("pg_io", "client backend/temp relation/normal", "write_bytes"): 4096,
    ("pg_slru", "transaction", "blks_written"): 2,
    ("pg_database", "pgbench", "temp_bytes"): 1000,
    ("pg_wal", "all", "wal_bytes"): 800_000,
    ("pg_wal", "all", "wal_fpi"): 500,
}
V18 = {
    **V17,
    ("pg_io", "client backend/wal/normal", "write_bytes"): 1_600_000,
    ("pg_io", "walwriter/wal/init", "write_bytes"): 400_000,
}
IO_BYTES = 81_920 + 8192 + 16_384 + 4096 + 2 * 8192 + 1000


@pytest.mark.parametrize(
    ("counts", "data", "wal", "wal_written", "images"),
    [
        (V13, 60 * 8192, 900_000, None, None),
        # The position is that of the moment; in what of the WAL the view had not told of yet there are as many images.
        (V14, 60 * 8192, 900_000, None, 50 * 8192 * 9 / 8),
        (V17, IO_BYTES, 800_000, None, 800_000),  # no more than there was WAL
        (V18, IO_BYTES, 800_000, 2_000_000, 800_000),
        ({}, None, None, None, None),
    ],
    ids=["13", "14", "17", "18", "nothing was read"],
)
def test_what_postgresql_wrote_by_version(
    counts: dict[tuple[str, str, str], float],
    data: float | None,
    wal: float | None,
    wal_written: float | None,
    images: float | None,
) -> None:
    """Bytes a second, of counts that grow so far in two seconds."""
    measured = trial(1, 1, "disk", 100.0).trial
    samples = [
        Sample(t_ns, *key, 7 + share * value)
        for key, value in counts.items()
        for t_ns, share in ((-SECOND_NS // 5, 0), (2 * SECOND_NS, 1))
    ]
    written = postgres_writes(measured, measured_phase(measured, by_metric(samples)))
    reported = (written.data, written.wal, written.wal_written, written.full_page_images)
    assert reported == tuple(
        None if value is None else pytest.approx(value / 2) for value in (data, wal, wal_written, images)
    )
    assert set(written.missing) == {name for name in written.missing if getattr(written, name) is None}
    assert len(written.missing) == [data, wal, wal_written, images].count(None)


def test_what_the_views_do_not_show_yet_is_none_and_the_position_of_the_wal_is_there() -> None:
    measured = trial(1, 1, "disk", 100.0).trial
    late = {**V18, ("pg_wal", "all", "insert_lsn_bytes"): 600_000, ("pg_database", "pgbench", "xact_commit"): 1}
    samples = [Sample(t_ns, *key, value * t_ns / SECOND_NS) for key, value in late.items() for t_ns in (0, SECOND_NS)]
    written = postgres_writes(measured, measured_phase(measured, by_metric(samples)))
    assert written.wal == pytest.approx(600_000)
    assert (written.data, written.wal_written, written.full_page_images) == (None, None, None)
    assert set(written.missing) == {"data", "wal_written", "full_page_images"}
    assert all("less than half of the transactions" in reason for reason in written.missing.values())


def test_a_counter_is_counted_from_where_the_measured_phase_begins_to_where_it_ends() -> None:
    phase = {"warmup_ns": SECOND_NS, "measured_ns": 4 * SECOND_NS}
    measured = trial(1, 1, "disk", 100.0).trial.model_copy(update=phase)
    readings = ((-2.0, 1), (0.5, 4), (1.5, 6), (5.0, 25), (5.2, 26), (6.0, 99))
    samples = [Sample(round(t_s * SECOND_NS), "s", "o", "m", value) for t_s, value in readings]

    def growth(samples: list[Sample], metric: str = "m") -> float | None:
        return measured_phase(measured, by_metric(samples)).growth("s", "o", metric)

    assert growth(samples) == 21
    assert growth(samples, "other") is None
    assert growth(samples[:1]) is None
    began_again = Sample(3 * SECOND_NS, "s", "o", "m", 2)
    assert growth([*samples, began_again]) is None


def one_disk(
    *tps: float, spread: float = 0.0, checkpoint: bool = True, others: int = 0, **storage: Any
) -> BundleContents:
    """One variant on a loop device, loop0, on a disk, sda; the device writes 16,000 bytes a transaction, the disk 20,000 and what others give to it."""
    given = bundle({"disk": tps}, repeats=len(tps))
    stack = (
        StackNode(kind="mount", name="/mnt"),
        StackNode(kind="loop", name="loop0", depth=2),
        StackNode(kind="disk", name="sda", depth=5),
    )
    facts = storage_facts("disk", **{"stack": stack, "block_devices": ("loop0", "sda"), **storage})
    trials = tuple(write(trial, 1 + spread * place, checkpoint, others) for place, trial in enumerate(given.trials))
    return replace(given, storages={"disk": facts}, trials=trials)


def write(contents: TrialContents, factor: float, checkpoint: bool, others: int = 0) -> TrialContents:
    """Everything grows evenly in the measured phase; in a warm-up of 5 s before it, ten times as fast."""
    tps = contents.trial.tps or 0.0
    begin_ns = 5 * SECOND_NS
    counters = {
        ("pg_wal", "all", "wal_bytes"): WRITTEN_PER_TRANSACTION["wal"],
        ("pg_io", "client backend/wal/normal", "write_bytes"): WRITTEN_PER_TRANSACTION["wal_written"],
        ("pg_io", "checkpointer/relation/normal", "write_bytes"): WRITTEN_PER_TRANSACTION["data"],
        ("device", "loop0", "write_bytes"): 16_000 * factor,
        ("device", "sda", "write_bytes"): 20_000 * factor + others,
    }
    samples = [
        Sample(t_ns, *key, each * tps * seconds)
        for key, each in counters.items()
        for t_ns, seconds in ((0, 0), (begin_ns, 50), (begin_ns + 10 * SECOND_NS, 60))
    ]

    def device(name: str) -> DeviceIo:
        whole_load = round(counters["device", name, "write_bytes"] * tps * 60)
        return DeviceIo(
            device=name, roles=("data",), reads=0, read_bytes=0, writes=1, written_bytes=whole_load, flushes=None
        )

    ends = [1, *([begin_ns + 5] if checkpoint else [])]  # that of the warm-up counts for nothing
    return replace(
        contents,
        trial=contents.trial.model_copy(update={"warmup_ns": begin_ns, "devices": (device("loop0"), device("sda"))}),
        read_samples=lambda: by_metric(samples),
        events=tuple(Event(t_ns=t_ns, kind="checkpoint_end", text="") for t_ns in ends),
    )


def only(contents: BundleContents, **options: Any) -> VariantEndurance:
    (variant,) = endurance(contents, **options).variants
    return variant


def with_process_io(contents: TrialContents, written: float) -> TrialContents:
    """What the kernel counted of two groups of the server's processes, together, a transaction, and of the load engine."""
    tps = contents.trial.tps or 0.0
    groups = {"backends": written * 0.75, "checkpointer": written * 0.25, "load engine": 50_000.0}
    begin_ns = 5 * SECOND_NS
    rows = [
        Sample(t_ns, "process_io", group, "write_bytes", each * tps * seconds)
        for group, each in groups.items()
        for t_ns, seconds in ((0, 0), (begin_ns, 5), (begin_ns + 10 * SECOND_NS, 15))
    ]
    before = contents.read_samples
    return replace(contents, read_samples=lambda: {**before(), **by_metric(rows)})


@pytest.mark.parametrize(
    ("of_processes", "of_others", "share"),
    [
        (None, 0, 13 / 20),
        (16_000.0, 0, 16 / 20),
        (1000.0, 0, 13 / 20),
        (16_000.0, 780_000, 16 / 800),
        (None, 780_000, 13 / 800),
    ],
)
def test_what_others_write_to_a_disk_is_a_caveat_at_its_life(
    of_processes: float | None, of_others: int, share: float
) -> None:
    """By the kernel's count of the processes' writes or by the views, whichever explains more."""
    contents = one_disk(100, 100, 100, others=of_others)
    if of_processes is not None:
        contents = replace(contents, trials=tuple(with_process_io(one, of_processes) for one in contents.trials))
    loop, disk = only(contents, rating=Rating(rated_bytes=600 * TB, source="given")).devices
    assert disk.server_share is not None and disk.server_share.value == pytest.approx(share)
    assert loop.caveat is None
    if not of_others:
        assert disk.caveat is None
        return
    assert disk.caveat is not None
    assert disk.caveat.startswith(
        f"PostgreSQL's processes explain 2 % of what sda wrote, 1{'38' if of_processes else '12'} GB of 6.91 TB per day"
    )
    analysis = analyse(contents)
    account = analysis.variants[0].endurance
    assert account is not None
    assert list(written_caveats(account)) == [disk.caveat]


def test_bytes_per_transaction_and_day_of_each_device_and_flow() -> None:
    account = only(one_disk(100, 100, 100))
    flows = {flow.flow: flow for flow in account.flows}
    assert flows["wal"].bytes_per_transaction.value == pytest.approx(4000)
    assert flows["wal_written"].bytes_per_day.value == pytest.approx(10_000 * 100 * DAY_S)
    devices = {device.device: device for device in account.devices}
    assert devices["sda"].bytes_per_transaction.value == pytest.approx(20_000)
    assert devices["sda"].bytes_per_day.value == pytest.approx(20_000 * 100 * DAY_S)
    (storage,) = account.storages
    assert storage.devices == ("loop0",)  # what is directly below the file system, and not what is below that
    assert storage.amplification is not None
    # The WAL is within the data directory: 10,000 bytes of WAL and 3,000 of data.
    assert storage.amplification.value == pytest.approx(16_000 / 13_000)
    assert [gap.what for gap in account.gaps] == ["full page images of PostgreSQL"]


def test_a_given_rate_takes_the_place_of_the_measured_one() -> None:
    account = only(one_disk(100, 110, 90), tps=1000.0)
    assert account.tps is not None
    assert account.tps.value == 1000
    assert account.devices[1].bytes_per_day.value == pytest.approx(20_000 * 1000 * DAY_S)


def test_figures_have_the_interval_of_their_trials_and_a_life_has_it_turned_round() -> None:
    account = only(one_disk(100, 100, 100, 100, spread=0.1), rating=Rating(rated_bytes=600 * TB, source="given"))
    device = account.devices[0]
    written, life = device.bytes_per_day, device.life_years
    assert written.interval is not None
    assert life is not None and life.interval is not None
    assert written.interval.low < written.value < written.interval.high
    assert life.interval.low == pytest.approx(life_years(600 * TB, written.interval.high))
    assert life.interval.high == pytest.approx(life_years(600 * TB, written.interval.low))


def test_too_few_trials_have_no_interval_and_say_so() -> None:
    account = only(one_disk(100, 120))
    assert account.devices[0].bytes_per_day.interval is None
    assert "it needs at least 3" in (account.devices[0].bytes_per_day.note or "")


def test_a_trial_without_a_checkpoint_hardly_shows_data() -> None:
    gaps = {gap.what: gap.reason for gap in only(one_disk(100, 100, 100, checkpoint=False)).gaps}
    assert "no checkpoint ended in the measured phase of trial 1, 2, 3" in gaps["data that checkpoints write"]


def test_a_device_that_was_not_counted_is_a_gap_and_not_a_zero() -> None:
    contents = one_disk(100, 100, 100)
    first, second, third = contents.trials
    counted = {key: points for key, points in second.read_samples().items() if key[1] != "loop0"}
    account = only(replace(contents, trials=(first, replace(second, read_samples=lambda: counted), third)))
    assert [device.device for device in account.devices] == ["sda"]
    assert account.storages == ()
    assert {"bytes written to loop0"} <= {gap.what for gap in account.gaps}


def test_a_phase_in_which_nothing_was_read_is_a_gap_that_says_so() -> None:
    """A phase shorter than the time between two readings; those around it are of more than the phase."""
    contents = one_disk(100, 100, 100)
    trials = tuple(
        replace(one, trial=one.trial.model_copy(update={"measured_ns": SECOND_NS // 2})) for one in contents.trials
    )
    account = only(replace(contents, trials=trials))
    assert (account.flows, account.storages, account.devices) == ((), (), ())
    reasons = {gap.what: gap.reason for gap in account.gaps}
    assert reasons["wal of PostgreSQL"] == "no counter was read in the measured phase: measure for longer"
    assert reasons["bytes written to sda"] == "its counters were not read in every trial's measured phase"


def test_it_agrees_with_what_a_transaction_took_of_the_server() -> None:
    (variant,) = analyse(one_disk(100, 120, 90)).variants
    assert variant.work is not None and variant.work.wal_bytes is not None and variant.endurance is not None
    assert {flow.flow: flow.bytes_per_transaction for flow in variant.endurance.flows}["wal"] == variant.work.wal_bytes


def test_a_device_that_wrote_nothing_has_no_life_and_no_interval() -> None:
    contents = one_disk(100, 100, 100)
    trials = tuple(write(trial, 0, True) for trial in contents.trials)
    device = only(replace(contents, trials=trials), rating=Rating(rated_bytes=TB, source="given")).devices[0]
    assert device.bytes_per_day.value == 0
    assert device.bytes_per_day.interval is None
    assert "it was 0" in (device.bytes_per_day.note or "")
    assert device.life_years is None


def test_a_storage_without_devices_is_a_gap_with_its_reason() -> None:
    contents = one_disk(
        100, 100, 100, stack=(), block_devices=(), gaps=(Gap(what="/mnt: the devices below", reason="ZFS keeps that"),)
    )
    account = only(contents)
    assert account.storages == ()
    assert {"devices of storage disk": "ZFS keeps that"}.items() <= {
        gap.what: gap.reason for gap in account.gaps
    }.items()


def test_devices_of_a_pool_are_reported_by_their_use() -> None:
    contents = one_disk(100, 100, 100)
    pool = ZfsStorage.model_validate({"kind": "zfs", "data": ["spinning"], "log": ["fast"], "log_layout": "stripe"})
    members = {
        "spinning": storage_facts("spinning", block_devices=("sda",)),
        "fast": storage_facts("fast", block_devices=("loop0", "sda")),
    }
    contents = replace(
        contents,
        plan=contents.plan.model_copy(update={"storages": {"disk": pool}}),
        storages={**contents.storages, **members},
    )
    assert {device.device: device.uses for device in only(contents).devices} == {
        "loop0": ("log",),
        "sda": ("data", "log"),
    }


def test_nothing_measured_is_reported() -> None:
    contents = bundle({"disk": (None, None, None)}, repeats=3)
    (gap,) = only(contents).gaps
    assert (gap.what, gap.reason) == ("everything", "no trial counts")
