"""Charts in a terminal: they show what was measured, fit the window, and steer nothing."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from analyse_bundles import bundle, sweep
from hostile_text import HOSTILE, STEERING
from plinth.analyse import analyse
from plinth.common.shown import ascii_json
from plinth.report import render_plots
from plinth.report.plots.axes import Axis, decades
from plinth.report.plots.canvas import Canvas
from plinth.report.plots.glyphs import ASCII, BLOCKS, bar, glyphs_for, label_text, resampled, sparkline
from report_bundles import ramdisk
from small_bundles import written

ANSI = re.compile("\x1b\\[[0-9;]*m")


def plots(contents, width=80, **options):
    return render_plots(contents, analyse(contents), width=width, color=options.pop("color", False), **options)


def scaled(variant, block):
    """Memory scales with the clients, disk stays where it is; blocks differ by 1 %."""
    clients = variant.workload.clients
    return (1 + block / 100) * (1000 * clients if variant.levels["storage"] == "memory" else 500)


@pytest.fixture(scope="module")
def clients():
    return sweep({"storage": ["disk", "memory"], "workload.clients": [1, 2, 4, 8, 16]}, scaled)


def test_a_sparkline_is_its_values():
    assert sparkline([0, 5, None, 10], 10, BLOCKS) == "▁▅ █"
    assert sparkline([0, 5, None, 10], 10, ASCII) == "_+ #"
    assert sparkline([0, 0], 0, BLOCKS) == "▁▁", "nothing done is drawn at the bottom, and is no hole"


def test_values_for_fewer_columns_are_means_and_holes_stay_holes():
    assert resampled([1, 3, 5, 7], 2) == [2, 6]
    assert resampled([1, None, None, None], 2) == [1, None]
    assert resampled([1, 2], 5) == [1, 2]


def test_a_bar_is_exact_to_an_eighth_and_never_empty():
    assert bar(0.5, 3, BLOCKS) == "█▌ "
    assert bar(1, 3, BLOCKS) == "███"
    assert bar(0, 3, BLOCKS) == "▏  "
    assert bar(0.34, 3, ASCII) == "#  "


def test_a_logarithmic_axis_gives_each_decade_the_same_room():
    axis = decades([120.0, 45_000.0])
    assert (axis.low, axis.high) == (100, 100_000)
    assert [round(axis.place(value), 3) for value in (100, 1000, 10_000, 100_000)] == [0, 0.333, 0.667, 1]
    assert axis.ticks() == [100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]
    assert Axis(0, 4000, is_logarithmic=False).ticks() == [0, 1000, 2000, 3000, 4000]


def test_the_canvas_draws_from_the_bottom_left():
    canvas = Canvas(4, 2, BLOCKS)
    canvas.line((0, 0), (1, 1), "")
    canvas.letter((0, 1), "A", "")
    canvas.letter((1, 0), "A", "")
    canvas.letter((1, 0), "B", "")
    assert [line.plain for line in canvas.lines()] == ["A ⡠⠊", "⡠⠊ *"], "two letters at one place are a star"


def test_each_curve_has_its_letter_at_each_of_its_levels(clients):
    lines = plots(clients).splitlines()
    start = lines.index("Throughput over clients")
    chart = lines[start : lines.index("Throughput over time") - 1]
    assert "logarithmic axis: clients and tps" in chart[1]
    assert chart[-2:] == ["A  disk", "B  memory"]
    drawn = [re.sub(r"^ *[\d,]* ", "", line) for line in chart[2:-3]]
    assert sum(line.count("A") for line in drawn) == 5 == sum(line.count("B") for line in drawn)
    assert max(line.count("A") for line in drawn) == 5, "the flat curve is on one line"
    assert [line.count("B") for line in drawn if "B" in line] == [1, 1, 1, 1, 1], "the rising one is not"
    assert chart[-3].split() == ["1", "2", "4", "8", "16"]


def test_throughput_over_time_shows_the_measured_seconds(clients):
    lines = plots(ramdisk(seconds=30)).splitlines()
    start = lines.index("Throughput over time") + 2
    for line, name in zip(lines[start : start + 2], ("memory", "disk"), strict=True):
        drawn = re.fullmatch(rf"{name} +([▁▂▃▄▅▆▇█]+) +[\d,]+ to [\d,]+", line)
        assert drawn, line
        assert len(drawn[1]) == 30, "warm-up is left out"


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1", None])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_plots_fit_the_window_in_the_characters_of_its_encoding(clients, width, encoding):
    for contents in (clients, ramdisk()):
        text = plots(contents, width, encoding=encoding)
        assert max(map(len, text.splitlines())) <= width
        assert text.isascii() is (encoding != "utf-8")


def test_colours_are_asked_for(clients):
    coloured = plots(clients, color=True)
    assert ANSI.search(coloured)
    assert [line.rstrip() for line in ANSI.sub("", coloured).splitlines()] == plots(clients).splitlines()


def test_labels_of_others_are_one_line_and_steer_nothing(clients):
    variants = tuple(one.model_copy(update={"label": HOSTILE + one.label}) for one in clients.plan.variants)
    text = plots(replace(clients, plan=clients.plan.model_copy(update={"variants": variants})), 200)
    assert not STEERING.search(text)
    assert "\\x1b[31mred" in text
    assert max(map(len, text.splitlines())) <= 200
    assert label_text("größe 表表表", 9, BLOCKS) == "größe 表…"
    assert label_text("größe", 20, ASCII) == "gr\\xf6\\xdfe         "


def test_what_was_not_measured_is_said():
    text = plots(bundle({"disk": [100.0, 101.0, 99.0], "memory": [None, None, None]}))
    assert re.search(r"^memory +n/a: no trial counts$", text, re.MULTILINE)
    nothing = plots(bundle({"disk": [None], "memory": [None]}))
    assert "Latency: n/a: no trial counts" in nothing


def test_of_many_variants_some_are_drawn_and_the_rest_counted():
    many = sweep({"workload.clients": list(range(1, 21))}, lambda variant, block: 100.0 * variant.workload.clients)
    assert "12 more variants: see the HTML report" in plots(many)


def test_encodings_without_braille_have_ascii():
    assert glyphs_for("UTF-8") is BLOCKS
    assert glyphs_for("latin-1") is ASCII is glyphs_for("no such encoding")


@pytest.mark.long
def test_the_command_draws_plots_in_columns_and_encoding_of_the_terminal(tmp_path):
    folder = written(tmp_path / "bundle")

    def report(*options, **environment):
        return subprocess.run(
            [sys.executable, "-m", "plinth", "report", str(folder), *options],
            capture_output=True,
            check=False,
            env={"PATH": "/usr/bin:/bin", "PLINTH_STATE_DIR": str(tmp_path), "COLUMNS": "70", **environment},
        )

    wide = report("--plots", PYTHONIOENCODING="utf-8").stdout.decode()
    assert "Latency percentiles" in wide and "█" in wide
    assert not ANSI.search(wide), "standard output is no terminal"
    plain = report("--plots", PYTHONIOENCODING="ascii")
    assert plain.returncode == 0 and b"Latency percentiles" in plain.stdout and b"###" in plain.stdout
    document = report("--json", PYTHONIOENCODING="ascii")
    assert json.loads(document.stdout)["analysis"]["variants"]
    both = report("--plots", "--json")
    assert both.returncode == 2 and b"give one of" in both.stderr


def test_json_in_ascii_has_the_same_values():
    values = {"größe": ["R²", "\U0001f600", "\\u00b2"]}
    document = ascii_json(json.dumps(values, ensure_ascii=False))
    assert document.isascii() and json.loads(document) == values
