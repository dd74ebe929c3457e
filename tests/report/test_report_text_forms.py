"""The terminal table, Markdown and CSV."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from plinth.cli.results import Results, show_results, show_whole
from plinth.model.analysis import Analysis, VariantResult
from plinth.report import build_report, render_csv, render_markdown, render_terminal
from plinth.report.sections.endurance import written_sentence
from reported import Reported


def table_of(text: str) -> list[str]:
    return text.split("\n\n", 1)[0].splitlines()


class TestTerminal:
    @pytest.mark.long
    @pytest.mark.parametrize("width", [40, 60, 72, 80, 100, 120, 200])
    def test_fits_and_never_leaves_out_safety(self, trouble: Reported, many: Reported, width: int) -> None:
        for run in (trouble, many):
            text = render_terminal(run.report, width=width, color=False)
            assert max(cell_len(line) for line in text.splitlines()) <= width
            assert "commits" in table_of(text)[0]
            unsafe = sum(variant.safety.grade == "does not keep" for variant in run.analysis.variants)
            assert " ".join(table_of(text)).split().count("does") == unsafe

    def test_the_command_shows_it_without_the_samples(
        self, probed: Reported, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """They are most of a bundle; the timelines of the other forms need them, and the table has none."""
        unread = {"read_samples": lambda: pytest.fail("samples were read for a table")}
        trials = tuple(replace(trial, **unread) for trial in probed.contents.trials)
        results = Results(replace(probed.contents, trials=trials), probed.analysis, Path("bundle"))
        show_whole(results, plots=False)
        shown = capsys.readouterr().out
        assert "Comparison with the published study" in shown
        assert "Storage I/O measured by fio" in shown
        show_results(results, as_json=False, plots=False)
        assert probed.analysis.answer in " ".join(capsys.readouterr().out.split())
        with pytest.raises(pytest.fail.Exception, match="samples were read"):
            results.report  # noqa: B018 - what it does is what counts

    def test_at_80_columns_has_every_column_and_unbroken_figures(self, ramdisk: Reported) -> None:
        lines = table_of(render_terminal(ramdisk.report, width=80, color=False))
        assert lines[0].split() == ["#", "variant", "tps", "ratio", "p50", "/", "p99", "commits", "verdict"]
        memory = ramdisk.analysis.variants[0]
        assert memory.tps is not None and memory.tps.interval is not None
        assert f"{memory.tps.value:,.0f}" in lines[1]
        assert f"[{memory.tps.interval.low:,.0f}, {memory.tps.interval.high:,.0f}]" in lines[2]

    def test_the_cpu_of_clients_is_a_column_and_between_drivers_stays_longest(self, ramdisk: Reported) -> None:
        wide = table_of(render_terminal(ramdisk.report, width=120, color=False))
        assert "client CPU" in wide[0] and " 23.0 us " in wide[1]
        variants = tuple(
            variant.model_copy(update={"levels": {"workload.driver": driver}})
            for variant, driver in zip(ramdisk.analysis.variants, ("plinth", "psycopg", "plinth"), strict=True)
        )
        drivers = ramdisk.analysis.model_copy(update={"variants": variants})
        for width in (72, 80, 90, 100):
            heads = table_of(render_terminal(ramdisk.of(drivers), width=width, color=False))[0]
            assert "client CPU" in heads

    def test_wide_has_a_line_for_each_variant(self, ramdisk: Reported) -> None:
        assert len(table_of(render_terminal(ramdisk.report, width=120, color=False))) == 1 + 3

    def test_says_the_answer_the_noise_floor_and_warnings(self, trouble: Reported) -> None:
        words = " ".join(render_terminal(trouble.report, width=80, color=False).split())
        assert trouble.analysis.answer in words
        assert "Noise floor: differences of less than" in words
        assert all(f"warning: {' '.join(warning.split())}" in words for warning in trouble.analysis.warnings)

    def test_shows_what_each_variant_wrote_and_how_long_a_drive_lasts(self, ramdisk: Reported) -> None:
        words = " ".join(render_terminal(ramdisk.report, width=80, color=False).split())
        _, written = words.split("Written by variant: ")
        assert "storage disk (data): testdisk0p1; a drive in place of testdisk0" in written
        assert " lasts 1.1 y" in written
        # A tmpfs is stored on no device, which is not zero bytes.
        assert "memory: n/a: tmpfs on /srv/test/memory keeps its files in memory" in written

    def test_a_caveat_is_next_to_the_life_of_a_drive_that_others_write_to(self, ramdisk: Reported) -> None:
        caveat = "PostgreSQL's processes explain 4 % of what testdisk0 wrote"

        def with_caveat(variant: VariantResult) -> VariantResult:
            account = variant.endurance
            if account is None or not account.devices:
                return variant
            *above, below = account.devices
            devices = (*above, below.model_copy(update={"caveat": caveat}))
            return variant.model_copy(update={"endurance": account.model_copy(update={"devices": devices})})

        analysis = ramdisk.analysis.model_copy(update={"variants": tuple(map(with_caveat, ramdisk.analysis.variants))})
        words = " ".join(render_terminal(ramdisk.of(analysis), width=80, color=False).split())
        assert f"caveat: {caveat}" in words.split("Written by variant: ")[1]
        text = render_markdown(ramdisk.report.model_copy(update={"analysis": analysis}))
        assert f"disk: caveat: {caveat}" in text
        assert "caveat: PostgreSQL" not in render_markdown(ramdisk.report)

    def test_says_what_the_io_probe_measured_on_each_storage(self, probed: Reported) -> None:
        text = render_terminal(probed.report, width=400, color=False)
        empty, memory, measured = text.split("Storage I/O measured by fio:\n")[1].splitlines()[:3]
        assert empty.startswith("disk, empty: sequential scan, reads 12,000 IOPS, 98.3 MB/s; ")
        assert empty.endswith("; 23 more")
        assert memory == "memory, empty: all jobs n/a: fio is not installed"
        assert measured.startswith("disk, measured: sequential scan, reads 6,000 IOPS, ")
        without = probed.report.model_copy(update={"io": ()})
        assert "Storage I/O measured by fio" not in render_terminal(without, width=400, color=False)

    def test_of_reads_over_position_it_says_both_ends(self, probed: Reported) -> None:
        over = tuple(figure for figure in probed.report.io if figure.position is not None)
        text = render_terminal(probed.report.model_copy(update={"io": over}), width=400, color=False)
        (empty, _) = [line for line in text.splitlines() if "file at" in line]
        assert "file at 0 %, reads" in empty and "; file at 95 %, reads" in empty and empty.endswith("; 18 more")

    @pytest.mark.parametrize(
        ("times_as_long", "note"), [(3.0, ""), (1 / 3, "testdisk0 below it, including other writes")]
    )
    def test_a_storages_own_device_comes_before_the_hosts_below(
        self, ramdisk: Reported, times_as_long: float, note: str
    ) -> None:
        account = next(one.endurance for one in ramdisk.analysis.variants if one.endurance and one.endurance.storages)
        above, below = account.devices
        assert above.device == "testdisk0p1" and above.life_years is not None
        life = above.life_years.model_copy(update={"value": above.life_years.value * times_as_long})
        devices = (above, below.model_copy(update={"life_years": life}))
        *_, lasts = written_sentence(account.model_copy(update={"devices": devices})).partition("a drive in place of ")
        assert lasts.startswith("testdisk0p1 lasts")
        assert ("; " in lasts, note in lasts) == (bool(note), True)

    def test_an_alarm_is_said(self, ramdisk: Reported) -> None:
        noise = ramdisk.analysis.noise
        assert noise is not None
        alarmed = ramdisk.analysis.model_copy(update={"noise": noise.model_copy(update={"alarm": True})})
        assert "Noise floor: alarm" in render_terminal(ramdisk.of(alarmed), width=80, color=False)

    def test_plain_has_no_escape_codes_and_colour_has(self, ramdisk: Reported, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whether colour is wanted is decided by the caller alone."""
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert "\x1b" not in render_terminal(ramdisk.report, width=80, color=False)
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b[1;31mdoes not" in render_terminal(ramdisk.report, width=80, color=True)

    def test_user_text_is_not_taken_for_markup(self, ramdisk: Reported) -> None:
        odd = relabelled(ramdisk.analysis, "[red]a :smile: b[/red]")
        assert "[red]a :smile: b[/red]" in render_terminal(ramdisk.of(odd), width=200, color=False)

    @pytest.mark.parametrize("width", [80, 120, 200])
    def test_where_trials_are_not_enough_its_cell_says_so(self, ramdisk: Reported, width: int) -> None:
        memory, *others = ramdisk.analysis.variants
        assert memory.tps is not None
        few = memory.tps.model_copy(update={"interval": None, "more_trials": 12})
        analysis = ramdisk.analysis.model_copy(update={"variants": (memory.model_copy(update={"tps": few}), *others)})
        words = " ".join(render_terminal(ramdisk.of(analysis), width=width, color=False).split())
        assert "[not enough" in words and "trials]" in words

    def test_a_variant_without_figures_shows_none(self, ramdisk: Reported) -> None:
        first = ramdisk.analysis.variants[0].model_copy(update={"tps": None, "latency": None, "rank": None})
        analysis = ramdisk.analysis.model_copy(update={"variants": (*ramdisk.analysis.variants[1:], first)})
        last = table_of(render_terminal(ramdisk.of(analysis), width=120, color=False))[-1]
        assert last.split()[:2] == ["-", "memory"]
        assert last.count("n/a") == 2


def relabelled(analysis: Analysis, label: str) -> Analysis:
    first, *others = analysis.variants
    return analysis.model_copy(update={"variants": (first.model_copy(update={"label": label}), *others)})


class TestMarkdown:
    def test_has_question_answer_ranking_and_how_to_run_it_again(self, trouble: Reported) -> None:
        text = render_markdown(trouble.report)
        assert trouble.analysis.question in text
        assert trouble.analysis.answer in text
        assert "| 1 | memory | 3,754" in text
        assert "| does not keep | better |" in text
        assert all(f"- {warning}" in text for warning in trouble.analysis.warnings)
        assert "n/a: permission denied for view pg_stat_activity" in text
        assert trouble.contents.experiment_toml.strip() in text

    def test_tables_stay_whole_with_any_label(self, ramdisk: Reported) -> None:
        odd = relabelled(ramdisk.analysis, "a|b\n<script>")
        text = render_markdown(build_report(ramdisk.contents, odd))
        row = next(line for line in text.splitlines() if line.startswith("| 1 |"))
        assert "a\\|b &lt;script>" in row
        assert row.replace("\\|", "").count("|") == 9

    def test_has_what_was_written_with_shares_and_gaps(self, ramdisk: Reported) -> None:
        _, section = render_markdown(ramdisk.report).split("## Endurance\n\n")
        rows = [line.split(" | ") for line in section.split("\n\n")[0].splitlines()]
        assert rows[0][1:] == ["Written", "Per transaction", "Per day", "Amplification", "Drive life |"]
        (below,) = (row for row in rows if row[:2] == ["| disk", "storage disk (data): testdisk0p1"])
        assert below[2].startswith("14.1 kB") and below[3].endswith("TB]")
        assert "Drive life: of a drive rated for 600 TB written" in section
        assert "- memory, disk, disk (A/A): full page images of PostgreSQL: n/a: pg_stat_wal reported" in section
        assert "- memory: devices of storage memory: n/a: tmpfs on /srv/test/memory" in section

    def test_has_what_the_io_probe_measured(self, probed: Reported) -> None:
        section = render_markdown(probed.report).partition("## Storage I/O measured by fio\n")[2].partition("\n## ")[0]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line]
        assert ["disk", "empty", "sequential scan", "reads", "12,000", "98.3", "2.00 ms", "9.00 ms"] in rows
        assert ["disk", "measured", "sequential write, direct", "", "n/a: Invalid argument", "", "", ""] in rows
        assert ["memory", "empty", "all jobs", "", "n/a: fio is not installed", "", "", ""] in rows

    def test_a_fence_in_the_experiment_file_does_not_end_it(self, ramdisk: Reported) -> None:
        again = ramdisk.report.reproduction.model_copy(update={"experiment_toml": '# ```\nname = "x"'})
        text = render_markdown(ramdisk.report.model_copy(update={"reproduction": again}))
        assert '````toml\n# ```\nname = "x"\n````' in text

    def test_a_ratio_that_is_not_the_quotient_of_the_medians_says_why(self, ramdisk: Reported) -> None:
        first, *rest = ramdisk.analysis.comparisons
        noted = first.model_copy(update={"note": "2.5x is a median of ratios"})
        analysis = ramdisk.analysis.model_copy(update={"comparisons": (noted, *rest)})
        assert "memory: 2.5x is a median of ratios." in render_terminal(ramdisk.of(analysis), width=80, color=False)
        assert "- memory: 2.5x is a median of ratios." in render_markdown(build_report(ramdisk.contents, analysis))


class TestCsv:
    def test_has_a_row_for_each_trial_in_order_of_running(self, trouble: Reported) -> None:
        rows = list(csv.DictReader(io.StringIO(render_csv(trouble.report))))
        assert [int(row["trial"]) for row in rows] == list(range(1, 16))
        assert [row["tps"] for row in rows if row["trial"] in ("3", "4")] == [
            str(trouble.contents.trials[2].trial.tps),
            "",
        ]
        assert rows[3]["failure"] == "the server ended in mid-trial: signal 9 (killed)"
        assert rows[6]["excluded"].startswith("the load engine's own delay")
        assert {row["factor:storage"] for row in rows} == {"disk", "memory"}
        assert {(row["variant"], row["baseline"], row["aa_twin"]) for row in rows} == {
            ("disk", "true", "false"),
            ("disk-aa", "false", "true"),
            ("memory", "false", "false"),
        }

    def test_medians_of_its_rows_are_the_ranking(self, ramdisk: Reported) -> None:
        rows = list(csv.DictReader(io.StringIO(render_csv(ramdisk.report))))
        tps = sorted(float(row["tps"]) for row in rows if row["variant"] == "memory")
        memory = ramdisk.analysis.variants[0].tps
        assert memory is not None and memory.value == pytest.approx(tps[2])
