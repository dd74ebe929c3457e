"""The curated experiments, and what the guide to writing them shows: each can be planned here."""

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from hosts_here import host_here
from own_sshd import Sshd, own_sshd
from plinth.experiment import ParsedExperiment, read_experiment, read_experiment_text
from plinth.model.analysis import Analysis
from plinth.model.errors import ExperimentError
from plinth.model.experiment import Experiment
from plinth.model.plan import Plan
from plinth.model.published import PublishedFsync, PublishedIo
from plinth.model.storage_graph import mounted_storages
from plinth.report.sections.published import compare_with_published
from plinth.run.hosts.connect import connected_hosts
from plinth.run.planning.make_plan import make_plan

Planned = tuple[ParsedExperiment, Plan]
ONLY_IN_WORDS = ("ten-billion-rows-shared-buffers",)
"""Whose study gives no figure for the question."""
ONLY_PROBES = ("hundred-billion-tpcb-stripes",)
"""Whose study gives figures of its probes alone, at the size of the file."""
ONLY_LOSSES = ("io-errors", "quorum-truth-table", "quorum-truth-table-power")
"""Which ask for lost commits, not for speed: one fault in each cell is a result."""
REPOSITORY = Path(__file__).parents[2]
CURATED = sorted((REPOSITORY / "experiments").glob("*.toml"))
CATALOGUE = tomllib.loads((REPOSITORY / "scripts/catalogue.toml").read_text())
TAKES = {
    name: entry["takes"]
    for group in CATALOGUE["group"]
    for name, entry in group["experiment"].items()
    if "takes" in entry
}
"""What the catalogue calls the plan's estimate."""
EXAMPLES = re.findall(
    r"^### (?P<section>[^\n]+)\n(?:(?!^##).*\n)*?```toml\n(?P<toml>(?:(?!```).*\n)+)```",
    (REPOSITORY / "docs/guides/experiments.md").read_text(),
    re.M,
)
HEAD = """\
spec = 1
name = "guide"
question = "Does the guide tell the truth?"
workload = { builtin = "select-only" }
measure = { warmup = 0, duration = "1s", repeats = 1, aa = false }
"""
VARIANTS = {
    "The WAL": ["WAL on slow", "WAL on fast"],
    "Tablespaces": ["keys in bulk", "keys in keys"],
    "A field of a storage as a factor": [
        "ext4, flush latency 1ms",
        "ext4, flush latency 8ms",
        "xfs, flush latency 1ms",
        "xfs, flush latency 8ms",
    ],
    "Storages on storages": ["tank", "file"],
}


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with own_sshd(tmp_path_factory.mktemp("sshd") / "own", ("db1", "db2", "db3")) as running:
        yield running


@pytest.fixture
def planned(sshd: Sshd, scratch: Path) -> Callable[[Path, Sequence[str], bool], Planned]:
    """Plans an experiment; its hosts are this machine by other names."""

    def make(file: Path, overrides: Sequence[str] = (), full: bool = False) -> Planned:
        used = read_experiment(file, tuple(overrides), full=full).experiment.used_hosts
        here = {name: host_here(name, sshd, scratch) for name in used}
        told = [f'host.{name}.{key}="{value}"' for name, one in here.items() for key, value in one.keys.items()]
        loaded = read_experiment(file, (*overrides, *told), full=full)
        with connected_hosts(loaded.experiment.used_hosts, sshd.config) as hosts:
            return loaded, make_plan(loaded, run_id="curated", bundle=scratch / "bundle", hosts=hosts)

    return make


@pytest.mark.parametrize("file", CURATED, ids=[file.stem for file in CURATED])
def test_a_curated_experiment_can_be_planned_and_says_how_long_it_takes(file, state_dir: Path, planned) -> None:
    loaded, plan = planned(file)
    assert loaded.experiment.name == file.stem
    assert loaded.experiment.question.endswith("?")
    warnings = [warning for warning in plan.warnings if " is the same machine as " not in warning]
    if file.stem not in ONLY_LOSSES:
        assert warnings == []
    assert all(warning.startswith("measure.") for warning in warnings), "of intervals and the A/A pair"
    assert [need.sentence for need in plan.needs if need.where.startswith("storage.") and need.met is False] == []
    assert len(plan.variants) > 2
    assert plan.estimated_s < 15 * 60
    if takes := TAKES.get(file.stem):
        assert float(takes.removeprefix("about ").removesuffix(" minutes")) == pytest.approx(
            plan.estimated_s / 60, abs=1
        )
    assert not state_dir.exists(), "planning touches nothing"


@pytest.mark.long
@pytest.mark.parametrize("full", [False, True], ids=["small", "full"])
@pytest.mark.parametrize("file", CURATED, ids=[file.stem for file in CURATED])
def test_directories_can_take_the_place_of_its_storages(file: Path, full: bool, planned) -> None:
    """As real drives are put into it. What a directory does not have, such as latencies, is no factor then, which is said."""
    written = read_experiment(file, ()).experiment
    if full and not written.full:
        return
    mounted = mounted_storages(written.storage)
    overrides = tuple(f'storage.{name}={{kind = "directory"}}' for name in mounted)
    if (
        written.durability is not None
        or written.io_errors is not None
        or any(action.do == "power" for action in written.measure.actions)
    ):
        with pytest.raises(ExperimentError) as caught:
            planned(file, overrides, full)
        assert all(re.search("the power .*cannot be cut", problem.message) for problem in caught.value.problems)
        return
    if any(action.do == "snapshot" for action in written.measure.actions):
        with pytest.raises(ExperimentError) as caught:
            planned(file, overrides, full)
        assert all("has no snapshots: those of btrfs and ZFS are used" in one.message for one in caught.value.problems)
        return
    loaded, plan = planned(file, overrides, full)
    assert {plan.storages[name].kind for name in mounted if name in plan.storages} <= {"directory"}
    gone = set(written.matrix) - set(loaded.experiment.matrix)
    assert gone == set(loaded.removed_factors)
    assert all(any(f"matrix.{factor} is left out" in warning for warning in plan.warnings) for factor in gone)


@pytest.mark.parametrize(("section", "toml"), EXAMPLES, ids=[section for section, _ in EXAMPLES])
def test_an_example_of_the_guide_is_what_it_says(section: str, toml: str, state_dir: Path, scratch: Path) -> None:
    dataset = "" if "[dataset]" in toml else '[dataset]\nkind = "tpcb"\nscale = 1\n'
    plan = make_plan(
        read_experiment_text(HEAD + toml + dataset, "guide", Path()), run_id="guide", bundle=scratch / "bundle"
    )
    assert [variant.label for variant in plan.variants] == VARIANTS[section]
    assert not state_dir.exists(), "planning touches nothing"


def test_every_example_is_looked_at() -> None:
    assert [section for section, _ in EXAMPLES] == list(VARIANTS)


@pytest.mark.long
def test_the_published_replication_is_on_three_machines_without_an_emulated_network(planned) -> None:
    _, plan = planned(REPOSITORY / "experiments" / "hundred-billion-replication.toml", (), True)
    assert {storage.host for storage in plan.storages.values()} == {"db1", "db2", "db3"}
    assert plan.networked == () and list(plan.hosts) == ["db1", "db2", "db3"]


@pytest.mark.long
@pytest.mark.parametrize("file", CURATED, ids=[file.stem for file in CURATED])
def test_a_curated_experiment_is_shown_with_its_study_at_either_size(file: Path) -> None:
    """Every factor's published levels have a place here, and something that was published is of a variant."""
    loaded = read_experiment(file, ())
    experiment = loaded.experiment
    full = read_experiment(file, (), full=bool(experiment.full)).experiment
    assert (experiment.reference is None) == (loaded.reference is None)
    if loaded.reference is None:
        return
    if experiment.full:
        assert {factor: len(levels) for factor, levels in full.matrix.items()} == {
            factor: len(levels) for factor, levels in experiment.matrix.items()
        }
    compared = compare_with_published(
        make_plan(loaded, run_id="curated", bundle=Path("bundle")), nothing_measured(experiment)
    )
    assert compared is not None
    rows = [*compared.figures, *compared.ratios]
    if experiment.name in ONLY_PROBES:
        probes = [fact.measured_by for fact in loaded.reference.fact]
        probed = {probe.storage for probe in probes if isinstance(probe, (PublishedFsync, PublishedIo))}
        assert probed == experiment.storage.keys() - {"ssd"}
    else:
        assert any(row.variant is not None for row in rows) or experiment.name in ONLY_IN_WORDS


def nothing_measured(experiment: Experiment) -> Analysis:
    return Analysis(
        run_id="curated",
        experiment=experiment.name,
        question=experiment.question,
        answer="",
        variants=(),
        comparisons=(),
        noise=None,
        trials_planned=0,
        trials_counted=0,
    )
