"""Builds the Report, which holds all data of every output format, from a bundle and its analysis."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from plinth.model.analysis import Analysis
from plinth.model.base import Gap
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.facts import ServerFacts
from plinth.model.plan import Variant
from plinth.model.replay import recording_words
from plinth.model.report import (
    Command,
    CurvePoint,
    Mark,
    NotAvailable,
    Report,
    ReportServer,
    ReportTrial,
    ReportVariant,
    Reproduction,
    RunInfo,
    Version,
)
from plinth.model.units import format_count
from plinth.report.curves import latency_curve
from plinth.report.sections import page_tables, section_texts
from plinth.report.sections.bottlenecks import observer_sentence
from plinth.report.sections.ceilings import storage_flushes
from plinth.report.sections.differences import setting_rows
from plinth.report.sections.disclosure import disclosures
from plinth.report.sections.endurance import rating_sentence
from plinth.report.sections.flashbacks import flashback_texts
from plinth.report.sections.groups import group_notes
from plinth.report.sections.io import io_figures
from plinth.report.sections.io_errors import io_error_texts
from plinth.report.sections.machines import machine_texts
from plinth.report.sections.network import link_texts
from plinth.report.sections.new_orders import tpcc_texts
from plinth.report.sections.objectives import objective_texts
from plinth.report.sections.outages import outage_texts
from plinth.report.sections.published import compare_with_published
from plinth.report.sections.scaling import curve_texts, effect_texts, ratio_table
from plinth.report.sections.standbys import standby_texts
from plinth.report.sections.trade_offs import pareto_gaps, pareto_summary, pareto_texts
from plinth.report.text import altered_sentence, noise_sentence, ranking_note
from plinth.report.timeline import Timelines, no_timelines, timelines

EXPERIMENT_FILE = "experiment.toml"


def build_report(contents: BundleContents, analysis: Analysis, *, charts: bool = True) -> Report:
    """Build the report. Reads nothing but `contents` and `analysis`.

    Without `charts` it lacks time series and latency curves, for which every sample of the bundle is read: a terminal shows neither.
    """
    binned = timelines(contents) if charts else no_timelines(contents)
    ranked = [variant.id for variant in analysis.variants]
    planned = {variant.id: variant for variant in contents.plan.variants}
    flushes, datasets = storage_flushes(contents.probes), tuple(contents.datasets.values())
    report = Report(
        run=_run_info(contents, analysis),
        analysis=analysis,
        noise=noise_sentence(analysis),
        ranking=ranking_note(analysis),
        observation=observer_sentence(analysis),
        drive_life=rating_sentence(analysis.rating),
        sections=section_texts(analysis.sweep),
        variants=tuple(_variant(planned[variant], contents, charts) for variant in ranked),
        servers=_servers(contents.servers),
        settings=setting_rows([planned[variant] for variant in ranked], contents.servers),
        objectives=objective_texts(analysis),
        curves=curve_texts(analysis.sweep),
        ratios=ratio_table(analysis),
        effects=effect_texts(analysis.sweep),
        effects_missing=analysis.sweep.effects.missing if analysis.sweep and analysis.sweep.effects else None,
        pareto=pareto_texts(analysis),
        group_notes=group_notes(analysis),
        pareto_summary=pareto_summary(analysis),
        pareto_gaps=pareto_gaps(analysis),
        panels=binned.panels,
        series=binned.series,
        bin_s=binned.bin_s,
        trials=tuple(_trial(trial, place, binned) for place, trial in enumerate(contents.trials)),
        storages=tuple(contents.storages.values()),
        wear=contents.wear,
        flushes=flushes,
        datasets=datasets,
        standbys=standby_texts(contents, analysis.variants, binned.lags if charts else None),
        links=link_texts(contents),
        outages=outage_texts(contents),
        flashbacks=flashback_texts(contents),
        io_errors=io_error_texts(contents),
        machines=machine_texts(contents),
        io=io_figures(contents.io),
        tpcc=tpcc_texts(contents),
        published=compare_with_published(contents.plan, analysis, io=contents.io, flushes=flushes, datasets=datasets),
        host=contents.host,
        hosts=contents.plan.hosts,
        doctor=contents.doctor,
        gaps=_gaps(contents),
        reproduction=_reproduction(contents),
        disclosures=disclosures(contents, analysis),
    )
    return report.model_copy(update={"tables": page_tables(report)})


def _run_info(contents: BundleContents, analysis: Analysis) -> RunInfo:
    manifest = contents.manifest
    return RunInfo(
        run_id=manifest.run_id,
        plinth_version=manifest.plinth_version,
        created_unix_ns=manifest.created_unix_ns,
        ended_unix_ns=manifest.ended_unix_ns,
        status=manifest.status,
        reason=manifest.reason,
        bundle=contents.path,
        altered=altered_sentence(analysis),
    )


def _variant(variant: Variant, contents: BundleContents, charts: bool) -> ReportVariant:
    return ReportVariant(
        id=variant.id,
        label=variant.label,
        levels=variant.levels,
        storages=contents.cluster_of(variant).primary.roles,
        workload=_workload(variant),
        latency_curve=_curve(variant.id, contents.trials) if charts else (),
    )


def _workload(variant: Variant) -> str:
    workload = variant.workload
    if variant.recording is not None:
        return recording_words(variant.recording, workload)
    what = workload.builtin or ", ".join(PurePath(script).name for script in workload.script)
    driver = "" if workload.driver == "plinth" else f", driver {workload.driver}"
    ledger = ", commit ledger" if workload.ledger else ""
    return f"{what}, {format_count(workload.clients, 'client')}, {workload.protocol} protocol{driver}{ledger}"


def _curve(variant: str, trials: Iterable[TrialContents]) -> tuple[CurvePoint, ...]:
    counted = (
        t for t in trials if t.trial.variant == variant and t.trial.status == "complete" and t.trial.excluded is None
    )
    return latency_curve(trial.histograms for trial in counted)


def _servers(servers: Mapping[str, ServerFacts]) -> tuple[ReportServer, ...]:
    """Return the distinct servers, ignoring their settings and data directories."""
    alike: dict[ReportServer, list[str]] = {}
    for variant, facts in servers.items():
        origin = facts.installation
        server = ReportServer(
            version=facts.version,
            origin=f"{origin.bindir} ({origin.origin})" if origin else "external",
            run_as=facts.run_as,
            run_as_reason=facts.run_as_reason,
            data_checksums=facts.data_checksums,
            memory_limit_bytes=facts.memory_limit_bytes,
            data_directories=(),
            variants=(),
        )
        alike.setdefault(server, []).append(variant)
    return tuple(
        server.model_copy(
            update={
                "variants": tuple(variants),
                "data_directories": tuple(
                    dict.fromkeys(d for variant in variants if (d := servers[variant].data_directory) is not None)
                ),
            }
        )
        for server, variants in alike.items()
    )


def _trial(contents: TrialContents, place: int, binned: Timelines) -> ReportTrial:
    trial = contents.trial
    return ReportTrial(
        number=trial.number,
        block=trial.block,
        variant=trial.variant,
        status=trial.status,
        failure=trial.failure,
        excluded=trial.excluded,
        started_unix_ns=trial.started_unix_ns,
        warmup_s=trial.warmup_ns / 1e9,
        end_s=binned.ends_s[place],
        columns=binned.columns[place],
        marks=tuple(Mark(t_s=event.t_ns / 1e9, kind=event.kind, text=event.text) for event in contents.events),
        panel_gaps=binned.gaps[place],
        checks=trial.checks,
        devices=trial.devices,
        errors=trial.errors,
        cache=trial.cache,
        restored=trial.restored,
        outage=trial.outage,
        flashbacks=trial.flashbacks,
    )


def _gaps(contents: BundleContents) -> tuple[NotAvailable, ...]:
    """Return all unavailable data; a gap that several trials or servers share is listed once."""
    places: dict[Gap, list[str]] = {}

    def add(where: str, gaps: Iterable[Gap]) -> None:
        for gap in gaps:
            places.setdefault(gap, []).append(where)

    add("host", contents.host.gaps)
    for storage in contents.storages.values():
        add(f"storage {storage.name}", storage.gaps)
    for name, probe in contents.probes.items():
        add(f"storage {name}", probe.gaps)
    if contents.wear is not None:
        add("wear", [*contents.wear.gaps, *(gap for disk in contents.wear.disks for gap in disk.gaps)])
    for examination in contents.doctor.examinations if contents.doctor else ():
        add("doctor", examination.gaps)
    for cluster, loaded in contents.datasets.items():
        add(f"dataset of {cluster}", loaded.gaps)
    for variant, server in contents.servers.items():
        add(f"server of {variant}", server.gaps)
    for node, server in contents.standbys.items():
        add(f"standby of {node}", server.gaps)
    for trial in contents.trials:
        add(f"trial {trial.trial.number}", trial.trial.gaps)
    return tuple(
        NotAvailable(where=_joined(list(dict.fromkeys(where))), what=gap.what, reason=gap.reason)
        for gap, where in places.items()
    )


def _joined(places: Sequence[str]) -> str:
    """Join places: ["trial 1", "trial 2", "trial 3", "trial 7", "host"] -> "trials 1 to 3, 7; host"."""
    numbers = [int(place.removeprefix("trial ")) for place in places if place.startswith("trial ")]
    others = [place for place in places if not place.startswith("trial ")]
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    trials = [f"trial{'s' if len(numbers) > 1 else ''} {', '.join(texts)}"] if numbers else []
    return "; ".join([*trials, *others])


def _reproduction(contents: BundleContents) -> Reproduction:
    plan = contents.plan
    # A repeated run plans added trials from the start.
    repeats = [f"measure.repeats={plan.experiment.measure.repeats}"] if plan.extensions else []
    settings = [override for override in plan.overrides if "=" in override] + repeats
    overrides = "".join(f" {shlex.join(['--set', setting])}" for setting in settings)
    bundle = PurePath(contents.path).name
    return Reproduction(
        commands=(
            f"plinth run {EXPERIMENT_FILE}{' --full' if plan.full else ''}{overrides}",
            f"plinth report {shlex.quote(bundle)} --html --output report.html",
            f"plinth verify {shlex.quote(bundle)}",
        ),
        experiment_toml=contents.experiment_toml,
        overrides=plan.overrides,
        seed=plan.experiment.measure.seed,
        versions=_versions(contents),
        steps=tuple(
            Command(title=step.title, command=shlex.join(step.argv), user=step.user)
            for step in plan.steps
            if step.argv is not None
        ),
    )


def _versions(contents: BundleContents) -> tuple[Version, ...]:
    postgres = dict.fromkeys(facts.version for facts in contents.servers.values())
    engines = (trial.trial.engine for trial in contents.trials)
    drivers = dict.fromkeys(engine.driver for engine in engines if engine is not None and engine.driver is not None)
    return (
        Version(name="Plinth", version=contents.manifest.plinth_version),
        *(Version(name="PostgreSQL", version=version) for version in postgres),
        *(Version(name="driver", version=version) for version in drivers),
        Version(name="Linux", version=contents.host.kernel),
        Version(name="operating system", version=contents.host.os),
    )
