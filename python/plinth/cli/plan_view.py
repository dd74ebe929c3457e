"""A plan, for people."""

from rich.columns import Columns
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from plinth.model.dataset import DatasetSpec
from plinth.model.plan import DATA_ROLE, Need, Plan, PlannedCluster, Variant
from plinth.model.units import format_duration, format_size


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
        f"\n{len(plan.variants)} variants, {len(plan.trials)} trials of {format_duration(measure.warmup_s)} warm-up and "
        f"{format_duration(measure.duration_s)} measured; about {format_duration(plan.estimated_s)} in all\n"
    )
    for override in plan.overrides:
        console.print(f"  differs from the file: {override}")
    console.print(_variants(plan))
    console.print("  * the baseline that the others are compared to")
    for variant, reason in plan.lacking.items():
        console.print(f"  lost: {variant}: {reason}", style="yellow")
    differing = _differing_settings(plan)
    if differing is not None:
        console.print("\nSettings that differ between variants", style="bold")
        console.print(differing)
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
    if plan.doomed:
        console.print("\nDestroyed", style="bold red", end="")
        console.print(" (only with --destroy on the command line of `plinth run`)")
        console.print(_doomed(plan))
    console.print("\nNeeds", style="bold")
    console.print(_needs(plan))
    if any(need.met is False for need in plan.needs):
        says = "the run is refused, or what stands there is lost; --scale-to-fit cuts the dataset until it fits"
        console.print(f"  NOT ENOUGH: {says}", soft_wrap=True)
    console.print(f"  written by estimate: {format_size(plan.estimated_written_bytes)}{_budget(plan)}")
    for warning in plan.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"))


def _variants(plan: Plan) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("  variant", "storage", "PostgreSQL", "dataset", "workload", "clients", "protocol"):
        # What tells variants apart must not be cut off.
        table.add_column(title, justify="right" if title == "clients" else "left", no_wrap=title == "  variant")
    clusters = {cluster.id: cluster for cluster in plan.clusters}
    for variant in plan.variants:
        cluster = clusters[variant.cluster]
        mark = " *" if variant.is_baseline else ""
        table.add_row(
            f"  {variant.id}{mark}",
            _standing(cluster),
            cluster.installation.version if cluster.installation else "external",
            _dataset(cluster.dataset),
            _workload(variant),
            str(variant.workload.clients),
            variant.workload.protocol,
        )
    return table


def _workload(variant: Variant) -> str:
    """ "tpcb-like", "numbers-select by psycopg", "read.sql@9, write.sql"."""
    by = "" if variant.workload.driver == "plinth" else f" by {variant.workload.driver}"
    names = (f"{script.name}@{script.weight}" if script.weight != 1 else script.name for script in variant.scripts)
    return ", ".join(names) + by


def _dataset(dataset: DatasetSpec) -> str:
    """ "tpcb, scale 10", "numbers, rows 1,000,000"."""
    key = dataset.size_key
    return dataset.kind if key is None else f"{dataset.kind}, {key} {getattr(dataset, key):,}"


def _standing(cluster: PlannedCluster) -> str:
    """ "slow, WAL on fast, tablespace bulk on slow"."""
    roles = (f"{role} on {storage}" for role, storage in cluster.roles.items() if role != DATA_ROLE)
    return ", ".join([cluster.storage or "external", *roles])


def _differing_settings(plan: Plan) -> Table | None:
    names = sorted({name for variant in plan.variants for name in variant.settings})
    differing = [name for name in names if len({str(v.settings.get(name)) for v in plan.variants}) > 1]
    if not differing:
        return None
    table = Table(box=None, pad_edge=False)
    table.add_column("  variant")
    for name in differing:
        table.add_column(name)
    for variant in plan.variants:
        table.add_row(f"  {variant.id}", *(str(variant.settings.get(name, "default")) for name in differing))
    return table


def _print_steps(plan: Plan, console: Console) -> None:
    width = len(str(len(plan.steps)))
    shown: set[tuple[str, ...]] = set()
    for number, step in enumerate(plan.steps, start=1):
        by = f" (as user {step.user})" if step.user else ""
        console.print(f"  {number:>{width}}. {step.title}{by}", soft_wrap=True)
        if step.destroys:
            console.print(f"  {'':>{width}}  DESTROYS what is on {', '.join(step.destroys)}", style="bold red")
        if step.argv is not None and step.argv not in shown:
            shown.add(step.argv)
            console.print(f"  {'':>{width}}  $ {' '.join(step.argv)}", soft_wrap=True, style="dim")


def _doomed(plan: Plan) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("  disk", "model", "size", "for storage", "allowed by", "as things are now"):
        table.add_column(title, overflow="fold")
    for device in plan.doomed:
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
    table = Table(box=None, pad_edge=False)
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
