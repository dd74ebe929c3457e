"""Curves, settings, texts, gaps and disclosures: the parts that a report is put together from."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import report_bundles
from plinth.model.analysis import NoiseFloor
from plinth.model.bottleneck import WaitShare
from plinth.model.facts import Setting
from plinth.model.figures import Estimate, Interval, number
from plinth.model.load import Histogram
from plinth.model.pg_units import setting_text
from plinth.model.report import Report, SettingRow
from plinth.report import build_report
from plinth.report.curves import latency_curve
from plinth.report.sections.bottlenecks import top_waits
from plinth.report.sections.differences import setting_rows
from plinth.report.sections.disclosure import disclosures
from plinth.report.text import latency, noise_sentence, rate, ratio
from reported import Reported, reported


def histogram(buckets: list[tuple[int, int]], scope: str = "transaction") -> Histogram:
    return Histogram.model_validate(
        {
            "scope": scope,
            "script": "s",
            "statement": None,
            "line": None,
            "text": None,
            "count": sum(count for _, count in buckets),
            "sum_ns": 0,
            "min_ns": 0,
            "max_ns": 0,
            "buckets": tuple(buckets),
        }
    )


class TestCurve:
    @settings(deadline=None)
    @given(st.lists(st.lists(st.tuples(st.integers(1, 10**9), st.integers(1, 50)), max_size=30), max_size=4))
    def test_is_the_quantile_of_all_latencies_of_a_trial(self, parts: list[list[tuple[int, int]]]) -> None:
        curve = latency_curve([[histogram(part) for part in parts]])
        values = np.sort(np.concatenate([np.repeat(v, n) for part in parts for v, n in part] or [np.array([])]))
        if not values.size:
            assert curve == ()
            return
        for point in curve[:-1]:
            rank = max(1, int(np.ceil(point.quantile * len(values) - 1e-6)))
            assert point.latency_ns == values[rank - 1]
        assert (curve[-1].quantile, curve[-1].latency_ns) == (1, values[-1])
        assert all(a.latency_ns <= b.latency_ns for a, b in pairwise(curve))

    def test_of_several_trials_it_is_the_median_of_their_own_and_ends_with_the_longest(self) -> None:
        trials = [[(5, 99), (top, 1)] for top in (20, 30, 40_000)]
        curve = latency_curve([[histogram(trial)] for trial in trials])
        beyond = [point.latency_ns for point in curve if 0.99 < point.quantile < 1]
        assert set(beyond) <= {30}
        assert curve[-1].latency_ns == 40_000

    def test_statements_are_not_transactions(self) -> None:
        assert latency_curve([[histogram([(5, 1)], scope="statement")]]) == ()

    def test_goes_no_further_than_the_count_shows(self) -> None:
        curve = latency_curve([[histogram([(5, 1000)])]])
        assert curve[-2].quantile == pytest.approx(0.999)

    def test_trials_that_do_not_count_are_left_out(self, trouble: Reported) -> None:
        counted = min(
            sum(h.count for h in t.histograms if h.scope == "transaction")
            for t in trouble.contents.trials
            if t.trial.variant == "disk" and t.trial.number != 7
        )
        disk = next(v for v in trouble.report.variants if v.id == "disk")
        steps = len(disk.latency_curve) - 2
        assert steps == int(np.floor(np.log10(counted) * 12))


class TestSettings:
    @pytest.mark.parametrize(
        ("value", "unit", "text"),
        [
            ("16384", "8kB", "128MB"),
            ("1", "8kB", "8kB"),
            ("1024", "MB", "1GB"),
            ("1500", "MB", "1500MB"),
            ("300", "s", "5min"),
            ("86400000", "ms", "1d"),
            ("90500", "ms", "90500ms"),
            ("-1", "8kB", "-1"),
            ("0", "ms", "0"),
            ("0.9", None, "0.9"),
            ("0.5", "ms", "0.5"),
            ("5", "parsec", "5 parsec"),
            ("5", "0kB", "5 0kB"),
            ("5", "../B", "5 ../B"),
            ("on", None, "on"),
        ],
    )
    def test_are_written_as_postgresql_shows_them(self, value: str, unit: str | None, text: str) -> None:
        assert setting_text(value, unit) == text

    def rows(self, **changes: tuple[Setting, ...] | None) -> dict[str, SettingRow]:
        """Rows of the synthetic run, with the settings of some variants replaced, or not read at all (None)."""
        contents = report_bundles.ramdisk(repeats=1, seconds=10)
        servers = dict(contents.servers)
        for variant, found in changes.items():
            server = servers.pop(variant)
            if found is not None:
                servers[variant] = server.model_copy(update={"settings": found})
        return {row.name: row for row in setting_rows(contents.plan.variants, servers)}

    def test_factors_come_first(self) -> None:
        rows = list(self.rows().values())
        assert (rows[0].name, rows[0].kind) == ("storage", "factor")
        assert [(c.text, c.variants) for c in rows[0].cells] == [("disk", ("disk", "disk-aa")), ("memory", ("memory",))]

    def test_a_variant_whose_list_lacks_a_setting_has_the_default(self) -> None:
        row = self.rows(memory=())["shared_buffers"]
        assert {cell.text: cell.variants for cell in row.cells} == {"128MB": ("disk", "memory", "disk-aa")}
        assert row.cells[0].source == "configuration file, default"

    def test_one_that_could_not_be_read_is_named_not_guessed(self) -> None:
        row = self.rows(memory=None)["fsync"]
        assert row.unread == ("memory",)

    def test_without_a_known_default_nothing_is_guessed(self) -> None:
        odd = Setting(name="odd", asked=None, value="1", unit=None, source="x", boot_value=None)
        assert self.rows(memory=(odd,))["odd"].unread == ("disk", "disk-aa")

    def test_where_a_server_is_comes_last_and_is_no_difference(self) -> None:
        port = Setting(name="port", asked=None, value="5433", unit=None, source="x", boot_value="5432")
        off = Setting(name="fsync", asked="off", value="off", unit=None, source="x", boot_value="on")
        rows = list(self.rows(memory=(port, off)).values())
        assert [row.name for row in rows][:2] == ["storage", "fsync"]
        assert (rows[-1].name, rows[-1].kind) == ("port", "place")


class TestText:
    @pytest.mark.parametrize(
        ("value", "text"), [(0, "0"), (0.01234, "0.0123"), (3.14159, "3.14"), (99.96, "100"), (12345.6, "12,346")]
    )
    def test_number(self, value: float, text: str) -> None:
        assert number(value) == text

    @pytest.mark.parametrize(
        ("value_ns", "text"),
        [(850, "850 ns"), (85_000, "85.0 us"), (1_234_567, "1.23 ms"), (11e6, "11.0 ms"), (2.1e9, "2.10 s")],
    )
    def test_latency(self, value_ns: float, text: str) -> None:
        assert latency(value_ns) == text

    def test_rate_of_nothing_is_not_zero(self) -> None:
        assert rate(None) == "n/a"

    def test_noise(self, ramdisk: Reported) -> None:
        ratio = Estimate(value=1.01, interval=Interval(low=0.97, high=1.05), n=5, method="test")
        floor = NoiseFloor(ratio=ratio, smallest_ratio=1.043, alarm=False)

        def said(noise: NoiseFloor | None, why: str | None = None) -> str:
            return noise_sentence(ramdisk.analysis.model_copy(update={"noise": noise, "noise_missing": why}))

        assert "less than 4.3 % cannot be detected" in said(floor)
        assert "less than 2.4x cannot be detected" in said(floor.model_copy(update={"smallest_ratio": 2.4}))
        assert "alarm" in said(floor.model_copy(update={"alarm": True}))
        assert said(None, "no A/A pair was measured").startswith("Noise floor: n/a: no A/A pair was measured")
        few = ratio.model_copy(update={"interval": None, "note": "not enough trials: 3 that differ", "more_trials": 4})
        wide = NoiseFloor(ratio=few, smallest_ratio=8.4, alarm=False)
        assert said(wide).startswith("Noise floor: n/a: not enough trials") and "about 4 more" in said(wide)
        assert "8.4" not in said(wide)
        one = few.model_copy(update={"more_trials": 1})
        assert "about 1 more trial of each" in said(wide.model_copy(update={"ratio": one}))

    def test_what_has_no_interval_for_want_of_trials_says_so_in_its_cell(self) -> None:
        few = Estimate(value=86_000, interval=None, n=3, method="test", note="not enough trials", more_trials=4)
        assert rate(few) == "86,000 [not enough trials]"
        assert ratio(few.model_copy(update={"value": 2.5})) == "2.5x [not enough trials]"
        assert rate(few.model_copy(update={"more_trials": None})) == "86,000"

    def test_many_waiting_backends_are_a_plain_number(self, ramdisk: Reported) -> None:
        waits = (WaitShare(kind="client backend", event="IO:WalSync", processes=123.4),)
        assert top_waits(ramdisk.analysis.variants[0].model_copy(update={"waits": waits})) == "IO:WalSync 123"


class TestGaps:
    def test_the_same_gap_of_several_trials_is_one(self, trouble: Reported) -> None:
        gap = trouble.contents.trials[0].trial.gaps
        trials = tuple(
            replace(t, trial=t.trial.model_copy(update={"gaps": gap if t.trial.number in (1, 2, 3, 9, 10) else ()}))
            for t in trouble.contents.trials
        )
        report = build_report(replace(trouble.contents, trials=trials), trouble.analysis)
        assert [gap.where for gap in report.gaps if gap.what == "pg_wait"] == ["trials 1 to 3, 9, 10"]

    def test_gaps_of_host_and_storage_are_there(self, ramdisk: Reported) -> None:
        assert [(gap.where, gap.what) for gap in ramdisk.report.gaps] == [
            ("host", "clocksource"),
            ("storage disk", "firmware of testdisk0"),
        ]


class TestServers:
    def test_alike_servers_are_one(self, ramdisk: Reported) -> None:
        (server,) = ramdisk.report.servers
        assert set(server.variants) == {"disk", "memory", "disk-aa"}
        assert server.data_directories == ("/srv/test/disk/data", "/srv/test/memory/data")


class TestReproduction:
    def test_has_commands_file_seed_and_versions(self, ramdisk: Reported) -> None:
        contents = ramdisk.contents
        plan = contents.plan.model_copy(update={"overrides": ("measure.repeats=9", "scale-to-fit cut nothing")})
        again = build_report(replace(contents, plan=plan), ramdisk.analysis).reproduction
        assert again.commands[0] == "plinth run experiment.toml --set measure.repeats=9"
        assert again.experiment_toml == contents.experiment_toml
        assert again.seed == 1
        assert [(v.name, v.version) for v in again.versions][:2] == [("Plinth", "0.0.0+test"), ("PostgreSQL", "18.6")]

    def test_names_the_external_commands_quoted_for_a_shell(self, ramdisk: Reported) -> None:
        steps = ramdisk.report.reproduction.steps
        assert [step.user for step in steps] == ["postgres", "postgres"]
        assert steps[0].command == "/usr/lib/postgresql/18/bin/initdb -D /srv/test/disk/data --data-checksums"


class TestDisclosures:
    def status(self, report: Report, word: str) -> str:
        (found,) = [each.status for each in report.disclosures if word in each.claim]
        return found

    def test_says_no_where_it_is_no(self, ramdisk: Reported) -> None:
        assert self.status(ramdisk.report, "cutting power") == "no"
        assert self.status(ramdisk.report, "separate machine") == "no"
        assert self.status(ramdisk.report, "interleaved") == "yes"

    @pytest.mark.parametrize(
        ("on_this_machine", "status", "evidence"),
        [
            (False, "yes", "the server is on another machine"),
            (True, "no", "load and server share one machine"),
            (None, "no", "n/a: "),
        ],
    )
    def test_a_machine_of_its_own_is_claimed_only_where_it_is_known(
        self, ramdisk: Reported, on_this_machine: bool | None, status: str, evidence: str
    ) -> None:
        contents, connection = ramdisk.contents, "host=db.example.org"
        clusters = tuple(
            cluster.model_copy(
                update={
                    "nodes": tuple(
                        node.model_copy(update={"server": node.server.model_copy(update={"connection": connection})})
                        for node in cluster.nodes
                    )
                }
            )
            for cluster in contents.plan.clusters
        )
        servers = {
            name: facts.model_copy(update={"on_this_machine": on_this_machine})
            for name, facts in contents.servers.items()
        }
        plan = contents.plan.model_copy(update={"clusters": clusters})
        found = disclosures(replace(contents, plan=plan, servers=servers), ramdisk.analysis)
        (claim,) = (one for one in found if "separate machine" in one.claim)
        assert claim.status == status
        assert claim.evidence.startswith(evidence)

    @pytest.mark.parametrize(
        ("cores", "status", "evidence"),
        [
            (
                [0.01, 0.02, 0.0],
                "yes",
                "other processes used less than 5 % of the cores in 3 of 3 trials; the most: 0.02 cores, in trial 2",
            ),
            (
                [0.01, 1.54, 0.3],
                "partly",
                "other processes used 5 % of 2 cores or more in 2 of 3 trials; the most: 1.54 cores, in trial 2",
            ),
            ([0.9, 1.54, None], "no", "in 2 of 3 trials; the most: 1.54 cores, in trial 2; of 1 it is not known"),
            ([None, None, None], "no", "n/a: the CPU of other processes was not told from the server's"),
        ],
    )
    def test_says_whether_others_kept_the_machine_busy(
        self, ramdisk: Reported, cores: list[float | None], status: str, evidence: str
    ) -> None:
        variant = ramdisk.analysis.variants[0]
        points = tuple(
            variant.trials[0].model_copy(update={"number": number, "neighbours_cores": used})
            for number, used in enumerate(cores, start=1)
        )
        analysis = ramdisk.analysis.model_copy(update={"variants": (variant.model_copy(update={"trials": points}),)})
        host = ramdisk.contents.host.model_copy(update={"cores": 2})
        found = disclosures(replace(ramdisk.contents, host=host), analysis)
        (claim,) = (one for one in found if "idle" in one.claim)
        assert claim.status == status
        assert claim.evidence.endswith(evidence)

    def test_says_partly_where_some_are_missing(self, trouble: Reported) -> None:
        assert self.status(trouble.report, "Totals agree") == "partly"
        assert self.status(trouble.report, "Hardware") == "partly"

    def test_no_pair_no_interval_no_claim(self) -> None:
        without_pair = reported(report_bundles.many(variants=4, repeats=2, seconds=5))
        assert self.status(without_pair.report, "A/A pair") == "no"

    def test_sequential_order_is_not_interleaved(self, ramdisk: Reported) -> None:
        experiment = ramdisk.contents.plan.experiment
        measure = experiment.measure.model_copy(update={"order": "sequential", "warmup_s": 0.0})
        plan = ramdisk.contents.plan.model_copy(
            update={"experiment": experiment.model_copy(update={"measure": measure})}
        )
        report = build_report(replace(ramdisk.contents, plan=plan), ramdisk.analysis)
        assert self.status(report, "interleaved") == "no"
        assert self.status(report, "Warm-up") == "no"

    def test_without_checks_nothing_is_claimed_to_agree(self, ramdisk: Reported) -> None:
        trials = tuple(
            replace(t, trial=t.trial.model_copy(update={"checks": ()}), events=()) for t in ramdisk.contents.trials
        )
        report = build_report(replace(ramdisk.contents, trials=trials), ramdisk.analysis)
        assert self.status(report, "Totals agree") == "no"
        assert self.status(report, "checkpoint") == "no"
