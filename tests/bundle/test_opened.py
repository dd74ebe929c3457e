"""`plinth.open_bundle`: the figures of a bundle as arrays and frames, and the notebook that shows it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import plinth
from plinth.bundle import BundleWriter, read_bundle
from plinth.bundle.opened import Table
from plinth.model.errors import RunError, UsageError
from sampled import rows_of
from small_bundles import CONTENTS, change, written
from typed import of

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "bundle.ipynb"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("opened") / "b")


@pytest.fixture(scope="module")
def bundle(folder):
    return plinth.open_bundle(folder)


def test_every_trial_is_a_row_with_its_levels_and_counts(bundle):
    frame = bundle.trials().pandas()
    assert bundle.question == CONTENTS.plan.experiment.question
    assert list(frame["trial"]) == [each.trial.number for each in CONTENTS.trials]
    assert list(frame["tps"]) == [each.trial.tps for each in CONTENTS.trials]
    assert list(frame["done"]) == [each.trial.measured.done for each in CONTENTS.trials if each.trial.measured]
    assert set(frame["level.storage"]) == {"disk", "memory"}
    assert frame["failure"].isna().all()


def test_all_forms_of_a_table_have_the_same_values(bundle):
    table = bundle.series()
    arrays, pandas, polars = table.numpy(), table.pandas(), table.polars()
    assert len(table) == len(pandas) == len(polars) == sum(len(each.series) for each in CONTENTS.trials) > 0
    assert list(arrays) == list(pandas.columns) == polars.columns
    assert arrays["done"].dtype == np.int64
    expected = [second.done for each in CONTENTS.trials for second in each.series]
    assert arrays["done"].tolist() == pandas["done"].tolist() == polars["done"].to_list() == expected


def test_histograms_and_samples_are_whole(bundle):
    histograms = bundle.histograms().numpy()
    assert histograms["bucket_count"].sum() == sum(
        count for each in CONTENTS.trials for one in each.histograms for _, count in one.buckets
    )
    samples = bundle.samples().polars()
    expected = [sample for each in CONTENTS.trials for sample in rows_of(each.read_samples())]
    assert sorted(samples["value"].to_list()) == sorted(sample.value for sample in expected)
    source = expected[0].source
    assert len(bundle.samples(source)) == sum(sample.source == source for sample in expected)


def test_a_source_that_is_not_there_is_an_error_that_names_those_that_are(bundle):
    with pytest.raises(UsageError, match="no samples of the source 'nothing'") as caught:
        bundle.samples("nothing")
    assert "device" in str(caught.value.hint)


def test_missing_values_stay_missing_and_integers_exact():
    table = Table({"n": (2**60 + 1, None), "x": (None, 0.5), "text": ("a", None), "none": (None, None)})
    arrays = table.numpy()
    assert arrays["n"].dtype == np.int64
    assert arrays["n"][0] == 2**60 + 1
    assert of(np.ma.MaskedArray, arrays["n"]).mask.tolist() == [False, True]
    assert of(np.ma.MaskedArray, arrays["x"]).mask.tolist() == [True, False]
    assert of(np.ma.MaskedArray, arrays["none"]).mask.all()
    assert arrays["text"].tolist() == ["a", None]
    frame = table.pandas()
    assert frame["n"].tolist()[0] == 2**60 + 1
    assert frame.isna().to_numpy().tolist() == [[False, True, False, True], [True, False, True, True]]
    assert table.polars().rows() == [(2**60 + 1, None, "a", None), (None, 0.5, None, None)]


def test_a_number_that_no_column_can_hold_is_refused_by_its_column(tmp_path):
    path = written(tmp_path / "b")
    change(next((path / "trials").iterdir()) / "trial.json", connect_ns=2**70)
    with pytest.raises(RunError, match="connect_ns does not fit into 64 bits"):
        plinth.open_bundle(path).trials()


def test_what_is_no_bundle_is_refused(tmp_path):
    with pytest.raises(UsageError, match="not a bundle"):
        plinth.open_bundle(tmp_path)


def run(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **environment}, timeout=240
    )


def test_frames_are_imported_only_when_asked_for(folder):
    done = run(
        "import sys, plinth; light = set(sys.modules); import os; b = plinth.open_bundle(os.environ['BUNDLE']); b.trials().numpy();"
        "print({'numpy', 'duckdb', 'pydantic'} & light, {'polars'} & set(sys.modules))",
        BUNDLE=str(folder),
    )
    assert done.stdout.split("\n")[0] == "set() set()", done.stderr


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_without_the_package_the_error_names_it(folder, package):
    done = run(
        f"import os, sys; sys.modules['{package}'] = None\n"
        "import plinth; from plinth.model.errors import MissingCapability\n"
        "try: getattr(plinth.open_bundle(os.environ['BUNDLE']).trials(), os.environ['PACKAGE'])()\n"
        "except MissingCapability as error: print(error.message, error.hint)",
        BUNDLE=str(folder),
        PACKAGE=package,
    )
    assert f"{package} is not installed" in done.stdout, done.stderr
    assert f"pip install {package}" in done.stdout


def test_the_notebook_runs_from_top_to_bottom(folder, monkeypatch):
    monkeypatch.setenv("BUNDLE", str(folder))
    names = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["median_tps"].max() == names["median_tps"].filter(like="memory").max()
    assert set(names["p99_ns"]) == set(names["median_tps"].index)
    assert all(value > 0 for value in names["p99_ns"].values())
    assert len(names["tps_over_time"]) > 0
    assert "device" in names["sources"]


def test_a_bundle_of_more_variants_than_can_be_analysed_is_refused_with_their_number(tmp_path):
    (variant, *_) = CONTENTS.plan.variants
    many = tuple(variant.model_copy(update={"id": f"v{place}"}) for place in range(1001))
    BundleWriter.create(tmp_path / "b", CONTENTS.plan.model_copy(update={"variants": many}), "spec = 1\n", "0.1.0")
    with pytest.raises(UsageError, match="1,001 variants; at most 1,000 can be analysed"):
        read_bundle(tmp_path / "b")


def test_a_notebook_shows_what_was_opened_and_not_an_address(bundle):
    shown = repr(bundle)
    assert shown.startswith(f"OpenedBundle({str(bundle.path)!r}: {CONTENTS.manifest.experiment}, complete, ")
    assert shown.endswith(f"{len(CONTENTS.trials)} of {len(CONTENTS.trials)} trials)")
    table = bundle.trials()
    assert repr(table).startswith(f"Table({len(table)} rows: trial, variant, level.storage, ")
