"""A plan, for people."""

import re
import shlex
from itertools import groupby
from textwrap import fill

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from plinth.cli.console import plain_table
from plinth.model.dataset import DatasetSpec
from plinth.model.experiment import FIRST_LOOK, MeasureSpec
from plinth.model.factors import Design, design_of
from plinth.model.figures import percent
from plinth.model.level import level_text
from plinth.model.plan import DATA_ROLE, Need, Plan, PlannedCluster, Variant
from plinth.model.replay import recording_words
from plinth.model.step import Step
from plinth.model.units import format_count, format_duration, format_size

_TRIAL_STEP = re.compile(r"trial\.(\d+)\.")
"""How the ids of a trial's steps begin."""


def full_size_sentence(plan: Plan) -> str:
    """What the published size takes, before anything else is said."""
    data_bytes = sum(cluster.data_bytes for cluster in plan.clusters)
    return (
        f"At the published size (--full): about {format_duration(plan.estimated_s)}, {format_size(data_bytes)} of data, "
        f"{format_size(plan.estimated_written_bytes)} written"
    )


def show_plan(plan: Plan, console: Console) -> None:
    """Print the plan: question, variants, order, steps, needs. A command that comes again is not repeated."""
    experiment, measure = plan.experiment, plan.experiment.measure
    if plan.full:
        console.print(full_size_sentence(plan) + "\n")
    console.print(f"{experiment.name}: ", style="bold", end="")
    console.print(experiment.question)
    console.print(
        f"\n{len(plan.variants)} variants, {_how_many(plan)} of {_warmup(measure)} and "
        f"{format_duration(measure.duration_s)} measured; {_how_long(plan)} in all\n"
    )
    if measure.target is not None:
        console.print(_end_of_trials(measure.target, measure.budget_s) + "\n")
    for action in measure.actions:
        console.print(Text(f"  in each trial: {action.title()}"))
    for override in plan.overrides:
        console.print(f"  differs from the file: {override}")
    console.print(_variants(plan))
    console.print(f"  * {_baselines(design_of(plan))}")
    for variant, reason in plan.lacking.items():
        console.print(f"  cannot be measured: {variant}: {reason}", style="yellow")
    differing = _differing_settings(plan)
    if differing is not None:
        console.print("\nSettings that differ between variants", style="bold")
        console.print(differing)
    _show_left_out(plan, console)
    console.print("\nTrials in order", style="bold", end="")
    console.print(f" ({measure.order}, seed {measure.seed})")
    console.print(Padding(Columns(f"{trial.number}. {trial.variant}" for trial in plan.trials), (0, 0, 0, 2)))
    console.print("\nSteps", style="bold")
    _print_steps(plan, console)
    if plan.shell_commands:
        console.print("\nCommands of the system that scripts start", style="bold")
        for shell in plan.shell_commands:
            console.print(
                Text(f"  {shell.script}:{shell.line} (as user {shell.user}): {shell.command}"), soft_wrap=True
            )
    if plan.destructive_targets:
        console.print("\nDestroyed", style="bold red", end="")
        console.print(" (only with --destroy on the command line of `plinth run`)")
        console.print(_destructive_targets(plan))
    console.print("\nNeeds", style="bold")
    console.print(_needs(plan))
    if any(need.met is False for need in plan.needs):
        says = "the run is refused, or what is stored there is lost; --scale-to-fit cuts the dataset until it fits"
        console.print(f"  NOT ENOUGH: {says}", soft_wrap=True)
    console.print(f"  written by estimate: {format_size(plan.estimated_written_bytes)}{_budget(plan)}")
    for warning in plan.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"))


def _how_many(plan: Plan) -> str:
    """ "10 trials", or how few and how many there may be where they end once they have decided."""
    most = len(plan.trials)
    least = most if plan.experiment.measure.target is None else min(most, FIRST_LOOK * len(plan.variants))
    return format_count(most, "trial") if least == most else f"{least} to {most} trials"


def _warmup(measure: MeasureSpec) -> str:
    """ "5 s warm-up", or from how long to how long it lasts where it ends once throughput is steady."""
    least, longest = format_duration(measure.shortest_warmup_s), format_duration(measure.longest_warmup_s)
    if measure.warmup_max_s is None:
        return f"{least} warm-up"
    return f"{least} to {longest} warm-up, until throughput is steady over {format_duration(measure.steady_window_s)},"


def _how_long(plan: Plan) -> str:
    longest = f"about {format_duration(plan.estimated_s)}"
    measure = plan.experiment.measure
    return longest if measure.target is None and measure.warmup_max_s is None else f"at most {longest}"


def _end_of_trials(target: float, budget_s: float | None) -> str:
    budget = "" if budget_s is None else f", or when they have taken {format_duration(budget_s)} (measure.budget)"
    return f"  trials end once differences of {percent(target)} are decided (measure.target){budget}"


def _variants(plan: Plan) -> RenderableType:
    """What differs between the variants as columns; what all have in common once, below."""
    clusters = {cluster.id: cluster for cluster in plan.clusters}
    design = design_of(plan)
    baselines = {stratum.baseline for stratum in design.strata}
    described = [_described(variant, clusters[variant.cluster], design) for variant in plan.variants]
    common = {
        name: value
        for name, value in described[0].items()
        if len(described) > 1 and all(other[name] == value for other in described)
    }
    table = plain_table("  variant")
    varied = [name for name in described[0] if name not in common]
    numeric = {"clients", *(factor.title for factor in design.factors if factor.unit is not None)}
    for name in varied:
        table.add_column(name, justify="right" if name in numeric else "left", overflow="fold")
    for variant, values in zip(plan.variants, described, strict=True):
        mark = " *" if variant.id in baselines else ""
        table.add_row(f"  {variant.id}{mark}", *(values[name] for name in varied))
    if not common:
        return table
    shared = "; ".join(f"{name} {value}" for name, value in common.items())
    return Group(table, Padding(Text(f"all variants: {shared}"), (0, 0, 0, 2)))


def _baselines(design: Design) -> str:
    if len(design.strata) == 1:
        return "the baseline that the others are compared to"
    compared, fixed = (
        " and ".join(factor.title for factor in design.factors if (factor.name in design.compared) is is_compared)
        for is_compared in (True, False)
    )
    return f"baselines: {compared} compared at each level of {fixed} (measure.compare)"


_OF_WORKLOAD = ("workload.builtin", "workload.script", "workload.clients", "workload.protocol", "workload.driver")
"""Keys that the columns of every plan show."""


def _described(variant: Variant, cluster: PlannedCluster, design: Design) -> dict[str, str]:
    others = [one for one in design.factors if one.name.startswith("workload.") and one.name not in _OF_WORKLOAD]
    return {
        "storage": _stored_on(cluster),
        "PostgreSQL": cluster.installation.version if cluster.installation else "external",
        "dataset": _dataset(cluster.dataset),
        "workload": _workload(variant),
        "clients": str(variant.clients),
        "protocol": variant.workload.protocol if variant.recording is None else "as recorded",
        **{
            factor.title: next((one.text for one in factor.levels if one.level == variant.levels.get(factor.name)), "")
            for factor in others
        },
    }


def _workload(variant: Variant) -> str:
    """ "tpcb-like", "numbers-select by psycopg", "read.sql@9, write.sql"."""
    by = "" if variant.workload.driver == "plinth" else f" by {variant.workload.driver}"
    if variant.recording is not None:
        return recording_words(variant.recording, variant.workload)
    names = (f"{script.name}@{script.weight}" if script.weight != 1 else script.name for script in variant.scripts)
    return ", ".join(names) + by


def _dataset(dataset: DatasetSpec) -> str:
    """ "tpcb, scale 10", "numbers, rows 1,000,000"."""
    key = dataset.size_key
    return dataset.kind if key is None else f"{dataset.kind}, {key} {getattr(dataset, key):,}"


def _stored_on(cluster: PlannedCluster) -> str:
    """ "slow, WAL on fast, tablespace bulk on slow"."""
    roles = (f"{role} on {storage}" for role, storage in cluster.primary.roles.items() if role != DATA_ROLE)
    return ", ".join([cluster.primary.server.storage or "external", *roles])


def _differing_settings(plan: Plan) -> Table | None:
    names = sorted({name for variant in plan.variants for name in variant.asked})
    differing = [name for name in names if len({str(v.asked.get(name)) for v in plan.variants}) > 1]
    if not differing:
        return None
    table = plain_table()
    table.add_column("  variant")
    for name in differing:
        table.add_column(name)
    for variant in plan.variants:
        settings = (variant.asked.get(name, "default") for name in differing)
        table.add_row(f"  {variant.id}", *map(level_text, settings))
    return table


def _show_left_out(plan: Plan, console: Console) -> None:
    """What replays leave out of their logs, each recording once."""
    found = dict.fromkeys(one.recording.left_out for one in plan.variants if one.recording is not None)
    for left_out in found:
        if left_out is not None:
            from plinth.cli.replay_view import show_left_out

            show_left_out(left_out, console)


def _print_steps(plan: Plan, console: Console) -> None:
    """Every step with its command. Steps that only repeat those of a variant's first trial are counted, not printed."""
    width = len(str(len(plan.steps)))
    repeated = _repeated_steps(plan)
    shown: set[tuple[str, ...]] = set()
    for is_repeated, group in groupby(enumerate(plan.steps, start=1), lambda numbered: numbered[1].id in repeated):
        steps = list(group)
        if is_repeated:
            console.print(
                f"  {steps[0][0]:>{width}}. to {steps[-1][0]}. the same for the trials that follow, in their order"
            )
            continue
        for number, step in steps:
            _print_step(f"{number:>{width}}", step, shown, console)


def _print_step(number: str, step: Step, shown: set[tuple[str, ...]], console: Console) -> None:
    indent = " " * (len(number) + 4)
    by = f" (as user {step.user})" if step.user else ""
    title = f"  {number}. {step.title}{by}"
    console.print(fill(title, console.width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False))
    if step.destroys:
        console.print(f"{indent}DESTROYS what is on {', '.join(step.destroys)}", style="bold red")
    if step.argv is not None and step.argv not in shown:
        shown.add(step.argv)
        # A command stays one line, so that it can be copied.
        console.print(f"{indent}$ {shlex.join(step.argv)}", soft_wrap=True, style="dim")


def _repeated_steps(plan: Plan) -> set[str]:
    """The ids of the steps of all trials but the first of each variant."""
    first: dict[str, int] = {}
    for trial in plan.trials:
        first.setdefault(trial.variant, trial.number)
    numbers = {trial.number for trial in plan.trials} - set(first.values())
    return {step.id for step in plan.steps if (found := _TRIAL_STEP.match(step.id)) and int(found[1]) in numbers}


def _destructive_targets(plan: Plan) -> Table:
    table = plain_table("  disk", "model", "size", "for storage", "allowed by", "as things are now")
    for device in plan.destructive_targets:
        table.add_row(
            f"  {device.id}" + (f" ({device.name})" if device.name else ""),
            device.model or "n/a",
            format_size(device.size_bytes),
            device.storage,
            f"--destroy {device.word}",
            Text("REFUSED: " + "; ".join(device.against), style="bold red") if device.against else "blank and free",
        )
    return table


def _budget(plan: Plan) -> str:
    limit = plan.experiment.measure.max_written_bytes
    return "" if limit is None else f"; the run ends before {format_size(limit)} are written to its disks"


def _needs(plan: Plan) -> Table:
    table = plain_table()
    table.add_column("  what")
    table.add_column("where")
    table.add_column("needed", justify="right")
    table.add_column("there", justify="right")
    table.add_column("")
    for need in plan.needs:
        there = "n/a" if need.available_bytes is None else format_size(need.available_bytes)
        table.add_row(f"  {need.what}", need.where, format_size(need.needed_bytes), there, _verdict(need))
    return table


def _verdict(need: Need) -> Text:
    match need.met:
        case None:
            return Text("n/a: could not be read", style="yellow")
        case True:
            return Text("ok", style="green")
        case False:
            return Text("NOT ENOUGH", style="bold red")
