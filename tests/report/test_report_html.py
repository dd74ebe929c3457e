"""The HTML report: one file, opened in a real browser without network."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import report_bundles
from browser import ROOT, check_report
from plinth.model.errors import MissingCapability
from plinth.model.report import Report
from plinth.report import build_report, html, render_html
from plinth.report.schema import schema_text
from reported import Reported, reported


def check(page: str, folder: Path, only: str | None = None) -> tuple[int, dict[str, Any]]:
    """Exit code and findings of the browser check."""
    file = folder / "report.html"
    file.write_text(page, encoding="utf-8")
    return check_report(file, only)


@pytest.mark.long
def test_the_check_says_when_a_page_is_drawn_too_late(probed: Reported, tmp_path: Path) -> None:
    """No page is drawn within 0 ms; how long a page takes is no matter of tests."""
    file = tmp_path / "report.html"
    file.write_text(render_html(probed.report), encoding="utf-8")
    code, found = check_report(file, "print", max_ready_ms=0)
    assert code == 1
    assert len(found["ready_ms"]) == 10
    (failure,) = found["failures"]
    assert failure.endswith("ms; at most 0")


@pytest.fixture(scope="module")
def of_probed(probed: Reported, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any]]:
    """The check of a run with a published study and with what the I/O probe measured."""
    return check(render_html(probed.report), tmp_path_factory.mktemp("probed"))


@pytest.fixture(scope="module")
def of_trouble(trouble: Reported, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any]]:
    """The check of a run in which much went wrong, with a published study."""
    studied = build_report(report_bundles.with_reference(trouble.contents), trouble.analysis)
    return check(render_html(studied), tmp_path_factory.mktemp("trouble"))


def data_of(page: str) -> str:
    match = re.search(r'<script type="application/json" id="plinth-report">(.*?)</script>', page, re.DOTALL)
    assert match
    return match[1]


class TestFile:
    def test_holds_the_whole_report(self, trouble: Reported) -> None:
        assert Report.model_validate_json(data_of(render_html(trouble.report))) == trouble.report

    def test_no_text_of_a_report_can_end_its_script(self, ramdisk: Reported) -> None:
        hostile = "</script><script>alert(1)</script><!--"
        analysis = ramdisk.analysis.model_copy(update={"question": hostile})
        page = render_html(ramdisk.report.model_copy(update={"analysis": analysis}))
        assert "alert(1)</script>" not in page
        assert json.loads(data_of(page))["analysis"]["question"] == hostile

    def test_a_missing_viewer_is_said_with_how_to_get_it(
        self, ramdisk: Reported, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(html, "VIEWER", "no-viewer.html")
        with pytest.raises(MissingCapability, match="not built") as caught:
            render_html(ramdisk.report)
        assert "make build" in (caught.value.hint or "")

    def test_the_published_schema_is_that_of_the_model(self) -> None:
        assert (ROOT / "docs/reference/report.schema.json").read_text() == schema_text()

    def test_the_schema_names_every_key_that_is_written(self, trouble: Reported) -> None:
        schema = json.loads(schema_text())
        written = json.loads(trouble.report.model_dump_json())
        assert set(schema["required"]) == set(schema["properties"]) == set(written)
        trial = schema["$defs"]["ReportTrial"]
        assert set(trial["required"]) == set(written["trials"][0])


def test_the_viewer_s_lock_file_names_no_registry() -> None:
    """It installs from whichever registry npm is told to use."""
    assert '"resolved"' not in (ROOT / "web" / "package-lock.json").read_text()


class TestInBrowser:
    def test_a_good_run(self, ramdisk: Reported, tmp_path: Path) -> None:
        code, found = check(render_html(ramdisk.report), tmp_path)
        assert (code, found["failures"]) == (0, [])
        points = {chart["id"]: chart["points"] for chart in found["charts"]}
        assert points["trials"] == 15
        assert points["tps-left"] == 35
        assert points["latency-right"] == 3 * 35
        assert "device_ops-left" in points and "device_ops-right" not in points
        assert [row["hatched"] for row in found["ranking"]] == [True, False, False]
        assert all("no block device is known under tmpfs" in text for text in found["gaps"])
        written = {row[0]: row[1:] for row in found["written"]}  # of the last variant that has such a row
        assert [name.split(" at ")[0] for name in written if name.endswith("transactions/s")] == [
            "memory",
            "disk",
            "disk (A/A)",
        ]
        assert written["storage disk (data): testdisk0p1"][0].startswith("14 kB")
        assert written["storage disk (data): testdisk0p1"][2].startswith("1.22")
        assert written["device testdisk0 (data)"][3].startswith("1.1 years")

    @pytest.mark.long
    def test_a_run_with_a_published_study(self, of_probed: tuple[int, dict[str, Any]]) -> None:
        code, found = of_probed
        assert (code, found["failures"]) == (0, [])
        figures, ratios = found["published"]
        names = [line["name"] for line in figures]
        assert names == ["disk", "memory in a hurry", "storage tape"]
        assert [line["marks"] for line in figures] == [["theirs", "ours"], ["theirs", "ours"], ["theirs"]]
        assert figures[1]["cells"][0] == "1,800"
        assert figures[2]["cells"][1] == "n/a: not measured here"
        assert [line["cells"][0] for line in ratios] == ["2 to 4×"]

    @pytest.mark.long
    def test_what_the_io_probe_measured(self, of_probed: tuple[int, dict[str, Any]]) -> None:
        code, found = of_probed
        assert (code, found["failures"]) == (0, [])
        rows = found["tables"]["I/O of disk"]
        assert rows[0] == ["sequential scan", "empty", "reads", "12,000", "98.3", "2.00 ms", "9.00 ms"]
        assert rows[1][:4] == ["sequential scan", "measured", "reads", "6,000"]
        assert ["sequential write, direct", "empty", "n/a: Invalid argument"] in rows
        assert found["tables"]["I/O of memory"] == [["all jobs", "empty", "n/a: fio is not installed"]]
        beside = found["tables"]["Other published figures and ours"]
        assert beside == [["dd to the disk", "52 MB/s", "98.3 MB/s"]]

    @pytest.mark.long
    def test_a_bad_day(self, of_trouble: tuple[int, dict[str, Any]]) -> None:
        code, found = of_trouble
        assert (code, found["failures"]) == (0, [])
        assert found["ranking"][0]["trials"] == 5
        assert found["ranking"][1]["trials"] == 4

    @pytest.mark.long
    def test_is_short_on_a_phone_and_on_paper(self, of_trouble: tuple[int, dict[str, Any]]) -> None:
        """Fifteen trials: sections but the ranking are folded on a phone, and opened for the printer, who takes no half-empty sheets.

        That nothing is cut off, printed over other text or drawn for another width is within the check itself.
        """
        code, found = of_trouble
        assert (code, found["failures"]) == (0, [])
        assert 1000 < found["phone_height_px"] < 4500
        assert 4 <= found["printed_pages"] <= 10
        assert found["open_after_print"] == 1, "the sections that were folded are folded again"

    @pytest.mark.long
    def test_sixty_variants_stay_small(self, tmp_path: Path) -> None:
        many = reported(report_bundles.many(repeats=5, seconds=60))
        assert len(many.report.trials) == 300
        code, found = check(render_html(many.report), tmp_path)
        assert (code, found["failures"]) == (0, [])
        assert found["size_bytes"] < 5_000_000
        labels = {variant.label for variant in many.analysis.variants}
        for swatches in (found["swatches"], found["printed_swatches"]):
            for where in ("#trials .key", "#latency .key", "#latency table"):
                assert {one["label"] for one in swatches[where]} == labels, where

    @pytest.mark.long
    def test_a_run_without_any_trial(self, ramdisk: Reported, tmp_path: Path) -> None:
        """Nothing to draw is a page that says so; the check, which wants charts, says that."""
        variants = tuple(
            v.model_copy(update={"trials": (), "tps": None, "latency": None, "rank": None})
            for v in ramdisk.analysis.variants
        )
        empty = ramdisk.report.model_copy(
            update={"trials": (), "analysis": ramdisk.analysis.model_copy(update={"variants": variants})}
        )
        code, found = check(render_html(empty), tmp_path)
        assert code == 1
        assert "no charts" in found["failures"]
        assert not any("error" in text or "uncaught" in text for text in found["failures"])


class TestTheCheckItself:
    """It fails where it should; what is planted is seen in the first view."""

    def broken(self, page: str, folder: Path) -> str:
        code, found = check(page, folder, only="light")
        assert code == 1
        return "\n".join(found["failures"])

    def test_network_and_console(self, ramdisk: Reported, tmp_path: Path) -> None:
        page = render_html(ramdisk.report)
        extra = '<img src="http://127.0.0.1:9/x.png"><script>console.error("wrong")</script>'
        said = self.broken(page.replace("</body>", f"{extra}</body>"), tmp_path)
        assert "asks the network for http://127.0.0.1:9/x.png" in said
        assert "error: wrong" in said

    def test_charts_without_data_and_cut_text(self, ramdisk: Reported, tmp_path: Path) -> None:
        place = next(i for i, series in enumerate(ramdisk.report.series) if series.panel == "wal")
        trials = tuple(
            trial.model_copy(update={"columns": tuple(() if i == place else c for i, c in enumerate(trial.columns))})
            for trial in ramdisk.report.trials
        )
        page = render_html(ramdisk.report.model_copy(update={"trials": trials}))
        style = (
            "<style>h1 { width: 9rem; overflow: hidden; white-space: nowrap } .lead { color: #ddd !important }</style>"
        )
        said = self.broken(page.replace("</body>", f"{style}</body>"), tmp_path)
        assert "chart wal-left has no data" in said
        assert "is cut off" in said
        assert "contrast" in said

    @pytest.mark.long
    def test_a_damaged_report(self, ramdisk: Reported, tmp_path: Path) -> None:
        page = render_html(ramdisk.report)
        said = self.broken(page.replace(data_of(page), "{"), tmp_path)
        assert "The report in this page is damaged" in said
