"""Charts outside the browser: the viewer's own, as SVG and PNG, in files with safe names."""

import json
import re
import struct
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from analyse_bundles import sweep
from hostile_text import HOSTILE, STEERING
from plinth.model.errors import MissingCapability
from plinth.report import charts
from plinth.report.charts import Drawing, draw_charts, png_of
from report_bundles import ramdisk
from reported import reported
from small_bundles import CONTENTS, written
from written_bundles import write_bundle

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn() -> list[Drawing]:
    """Of a sweep whose labels are hostile."""
    contents = sweep(
        {"storage": ["disk", "memory"], "workload.clients": [1, 2, 4, 8, 16]},
        lambda variant, block: (1 + block / 100) * 500 * variant.workload.clients,
    )
    variants = tuple(one.model_copy(update={"label": HOSTILE + one.label}) for one in contents.plan.variants)
    return draw_charts(reported(replace(contents, plan=contents.plan.model_copy(update={"variants": variants}))).report)


def text_of(drawing: Drawing) -> str:
    return " ".join(element.text or "" for element in ElementTree.fromstring(drawing.svg).iter(f"{SVG}text"))


def test_the_charts_are_those_of_the_page(drawn):
    assert [drawing.title for drawing in drawn[:3]] == [
        "Throughput over clients",
        "Every trial, tps",
        "Latency percentiles",
    ]
    curves = text_of(drawn[0])
    assert all(word in curves.split() for word in ("disk", "memory", "1", "2", "4", "8", "16", "clients"))


def test_a_chart_has_the_levels_of_its_curves(drawn):
    root = ElementTree.fromstring(drawn[0].svg)
    assert len({element.get("stroke") for element in root.iter(f"{SVG}line")}) == 2, "the key has a line of each colour"
    markers = [path for path in root.iter(f"{SVG}path") if path.get("transform") and path.get("fill") != "none"]
    assert len(markers) >= 10, "five levels of each of two curves"


def test_a_file_holds_nothing_for_scripts(drawn):
    assert not [drawing.title for drawing in drawn if "ecmeta" in drawing.svg]


def test_names_are_safe_and_follow_the_titles(drawn):
    names = [drawing.name for drawing in drawn]
    assert names[:3] == ["01-throughput-over-clients", "02-every-trial-tps", "03-latency-percentiles"]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[0-9]{2,}-[a-z0-9][a-z0-9-]{0,79}", name) for name in names)


def test_labels_of_others_are_text_in_it(drawn):
    series = [drawing for drawing in drawn if "red" in drawing.title]
    assert series, "time series are named after their variants"
    for drawing in drawn:
        ElementTree.fromstring(drawing.svg)
        assert "<script" not in drawing.svg
        assert not STEERING.search(drawing.svg + drawing.title)


def test_a_picture_has_its_text(drawn):
    picture = png_of(drawn[0])
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    root = ElementTree.fromstring(drawn[0].svg)
    assert (width, height) == (2 * int(root.get("width", "")), 2 * int(root.get("height", "")))
    without = drawn[0]._replace(svg=re.sub(r"<text.*?</text>", "", drawn[0].svg, flags=re.DOTALL))
    assert len(png_of(without)) < len(picture) - 2000, "the font was found: without text there is less to compress"


@pytest.mark.parametrize("package", ["py_mini_racer", "resvg_py"])
def test_a_package_that_is_not_there_is_named(drawn, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingCapability, match="not installed") as caught:
        draw_charts(reported(CONTENTS).report)
        png_of(drawn[0])
    assert "pgplinth[plots]" in (caught.value.hint or "")


def test_charts_that_are_not_built_are_said(monkeypatch):
    monkeypatch.setattr(charts, "CHARTS", "none.js")
    with pytest.raises(MissingCapability, match="not built"):
        draw_charts(reported(CONTENTS).report)


def report(folder, *options):
    return subprocess.run(
        [sys.executable, "-m", "plinth", "report", str(folder), *options],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PLINTH_STATE_DIR": str(folder.parent)},
    )


@pytest.mark.long
def test_the_command_writes_both_and_says_what(tmp_path):
    bundle, out, outside = written(tmp_path / "bundle"), tmp_path / "new" / "charts", tmp_path / "outside"
    outside.write_text("mine")
    out.mkdir(parents=True)
    (out / "01-every-trial-tps.svg").symlink_to(outside)
    ended = report(bundle, "--svg", str(out), "--png", str(out), "--json")
    assert ended.returncode == 0, ended.stderr
    index = json.loads(ended.stdout)
    assert {entry["file"] for entry in index} == {str(file) for file in out.iterdir()}
    assert {entry["title"] for entry in index} >= {"Every trial, tps", "Latency percentiles"}
    assert outside.read_text() == "mine", "a link is replaced, and not followed"
    assert not (out / "01-every-trial-tps.svg").is_symlink()


@pytest.mark.long
def test_what_cannot_be_written_is_said(tmp_path):
    bundle = written(tmp_path / "bundle")
    (tmp_path / "file").write_text("")
    ended = report(bundle, "--svg", str(tmp_path / "file"))
    assert ended.returncode == 4
    assert "cannot write the charts" in ended.stderr and "--svg" in ended.stderr
    ended = report(bundle, "--svg", str(tmp_path / "file" / "charts"))
    assert ended.returncode == 2
    assert "is not a folder" in ended.stderr and "--svg" in ended.stderr
    ended = report(bundle, "--svg", str(tmp_path), "--markdown")
    assert ended.returncode == 2 and "--svg and --png go with" in ended.stderr


def test_a_run_without_a_measured_trial_has_no_charts(tmp_path):
    failed = ramdisk(repeats=2, seconds=3)
    write_bundle(tmp_path / "bundle", replace(failed, trials=(), probes={}))
    ended = report(tmp_path / "bundle", "--png", str(tmp_path / "out"))
    assert ended.returncode == 1
    assert "there is no chart to write" in ended.stderr and "plinth resume" in ended.stderr
