"""The live log of a run: what the listener is called with is there for other processes, bounded, and fails no run."""

import json
import os
import subprocess
import threading

import pytest

from live_bundles import Going, going
from plinth.bundle import LIVE, BundleFolder, BundleWriter, LiveTail, read_manifest, verify_bundle
from plinth.model.live import Noted, SecondPassed
from plinth.model.progress import Progress
from plinth.run import live_log
from small_bundles import CONTENTS, written
from typed import of

SERIES = CONTENTS.trials[0].series
VARIANTS = {variant.id: variant for variant in CONTENTS.plan.variants}


@pytest.fixture
def run(tmp_path):
    with going(tmp_path / "b") as run:
        yield run


def lines(run):
    return [json.loads(line) for line in run.file.read_text().split("\n")[:-1]]


def kinds(run):
    return [line["kind"] for line in lines(run) if line["kind"] != "variant"]


def test_each_call_of_the_listener_is_a_line_and_passed_on(run):
    run.log.phase("make storage disk")
    run.log.progress(Progress("load", 1, 2, "rows", "", 0.5))
    run.log.note("a warning")
    assert kinds(run) == ["began", "phase", "progress", "note"]
    phase, progress, note = lines(run)[-3:]
    assert (phase["text"], progress["left_s"], note["text"]) == ("make storage disk", 2.0, "a warning")
    assert [called for called, *_ in run.recorded.calls] == ["phase", "progress", "note"]


def test_variants_are_in_the_order_of_the_analysis_the_twin_behind_its_baseline(run):
    variants = [line for line in lines(run) if line["kind"] == "variant"]
    assert {variant["id"] for variant in variants} == set(VARIANTS)
    twin = next(place for place, variant in enumerate(variants) if variant["is_aa_twin"])
    assert variants[twin - 1]["is_baseline"]


def test_a_trial_is_its_start_its_seconds_and_its_end_with_figures_and_gaps(run):
    run.whole_trial()
    assert kinds(run) == ["began", "trial_started", *["second"] * len(SERIES), "trial_ended"]
    second, ended = lines(run)[-2:]
    contents = CONTENTS.trials[0]
    assert (second["done"], second["latency_p99_ns"]) == (SERIES[-1].done, SERIES[-1].latency_p99_ns)
    assert ended["tps"] == contents.trial.tps
    assert 0 < ended["latency_p50_ns"] < ended["latency_p99_ns"]
    assert len(ended["gaps"]) == len(contents.trial.gaps)


def test_what_is_void_is_left_out_when_the_log_is_rewritten(run, monkeypatch):
    monkeypatch.setattr(live_log, "MAX_VOID_BYTES", 3000)
    run.log.note("first")
    run.log.phase("load")
    for place in range(5):
        run.whole_trial(place % 2)
    run.begin()
    ended = kinds(run).count("trial_ended")
    assert (ended, kinds(run).count("note")) == (5, 1)
    assert kinds(run).count("second") * 200 < 6000
    assert "phase" not in kinds(run)


def test_progress_of_a_long_phase_leaves_its_last_state(run, monkeypatch):
    monkeypatch.setattr(live_log, "MAX_VOID_BYTES", 3000)
    monkeypatch.setattr(live_log, "_PROGRESS_EVERY_S", 0)
    run.log.phase("load")
    for done in range(1000):
        run.log.progress(Progress("load", done, 1000, "rows"))
    assert run.file.stat().st_size < 6000
    assert kinds(run)[:2] == ["began", "phase"]
    assert set(kinds(run)[2:]) == {"progress"}
    assert lines(run)[-1]["done"] == 999


def test_a_resumed_run_has_the_trials_before(tmp_path):
    with going(tmp_path / "b"):
        pass
    resumed = Going(tmp_path / "b", earlier=CONTENTS.trials[:2])
    assert kinds(resumed) == ["began", "trial_ended", "trial_ended"]
    assert lines(resumed)[-1]["latency_p99_ns"] > 0


def test_it_is_readable_whole_by_the_reader(run):
    run.whole_trial()
    chunk = LiveTail(BundleFolder(run.path)).read()
    assert chunk is not None
    assert not chunk.problems
    assert len(chunk.events) == len(lines(run))


def test_progress_is_written_once_a_second_at_most_and_passed_on_always(run):
    for done in range(1000):
        run.log.progress(Progress("load", done, 1000, "rows"))
    assert len(run.recorded.of("progress")) == 1000
    assert kinds(run).count("progress") < 100


def test_one_trial_of_many_seconds_and_many_notes_are_bounded_and_it_is_said(run, monkeypatch):
    monkeypatch.setattr(live_log, "MAX_SECONDS_BYTES", 5000)
    run.begin()
    for _ in range(1000):
        run.second(SERIES[0])
    assert run.file.stat().st_size < 10_000
    assert len(run.recorded.of("second")) == 1000
    assert "no room" in lines(run)[-1]["text"]
    assert kinds(run).count("note") == 1
    for number in range(live_log.MAX_NOTES + 100):
        run.log.note(str(number))
    assert kinds(run).count("note") == live_log.MAX_NOTES + 1
    assert "no room for more notes" in lines(run)[-1]["text"]
    assert len(run.recorded.of("note")) == live_log.MAX_NOTES + 101


def test_texts_of_any_bytes_and_length_are_written(run):
    run.log.note("\udcff" * 3 + "x" * 100_000)
    run.second(SERIES[0], cores=float("nan"), other=float("inf"), good=1.0)
    chunk = LiveTail(BundleFolder(run.path)).read()
    assert chunk is not None
    assert not chunk.problems
    assert of(SecondPassed, chunk.events[-1]).host == {"good": 1.0}
    assert of(Noted, chunk.events[-2]).text.startswith("\\udcff")
    assert len(of(Noted, chunk.events[-2]).text) == 2000


def test_notes_of_several_threads_are_whole_lines(run):
    def noting():
        for _ in range(50):
            run.log.note("x" * 500)

    threads = [threading.Thread(target=noting) for _ in range(4)]
    for thread in threads:
        thread.start()
    for place in (0, 1, 0, 1):
        run.begin(place)
    for thread in threads:
        thread.join()
    assert kinds(run).count("note") == 200


def test_a_full_disk_is_a_note_once_and_fails_nothing(scratch):
    small = scratch / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "plinth-test", small], check=True)
    try:
        with going(small / "b") as run:
            free = os.statvfs(small)
            (small / "filler").write_bytes(bytes(free.f_bavail * free.f_frsize - 2**15))
            for place in (0, 1, 0):
                run.begin(place)
                for _ in range(200):
                    run.second(SERIES[0])
                run.end(place)
            run.log.close()
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)  # its folder is held open
    (note,) = run.recorded.of("note")
    assert "No space left on device" in note[0]
    assert LIVE in note[0]
    assert len(run.recorded.of("second")) == 600


def test_what_is_in_its_place_is_replaced_and_never_written_through(tmp_path):
    bundle = written(tmp_path / "b", trials=False, finished=False)
    (tmp_path / "precious").write_text("precious")
    (bundle / LIVE).symlink_to(tmp_path / "precious")
    run = Going(bundle)
    run.whole_trial()
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (bundle / LIVE).is_symlink()


def test_a_folder_of_logs_that_leads_outside_is_not_followed(tmp_path):
    bundle = written(tmp_path / "b", trials=False, finished=False)
    (bundle / "logs").rmdir()
    (tmp_path / "outside").mkdir()
    (bundle / "logs").symlink_to(tmp_path / "outside")
    run = Going(bundle)
    run.whole_trial()
    assert list((tmp_path / "outside").iterdir()) == []
    assert len(run.recorded.of("note")) == 1


def test_a_run_that_ends_leaves_none_and_its_bundle_is_sealed(run):
    run.whole_trial()
    run.log.close()
    run.log.note("said too late")
    folder = BundleFolder(run.path)
    BundleWriter(folder, read_manifest(folder)).finish("interrupted")
    assert not run.file.exists()
    verify_bundle(folder)
