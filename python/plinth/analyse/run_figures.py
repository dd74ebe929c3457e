"""From a bundle and its analysis to the figures that other runs are compared with, and the conditions that they were measured under: named
texts that those of another run can be held against."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from plinth.analyse.machine_load import load_conditions
from plinth.analyse.replayed import statement_times
from plinth.model.analysis import Analysis, VariantResult
from plinth.model.contents import BundleContents
from plinth.model.experiment import MeasureSpec
from plinth.model.facts import PLACES
from plinth.model.level import level_text
from plinth.model.pg_units import setting_text
from plinth.model.plan import ScriptText, TransactionText, Variant
from plinth.model.run_comparison import Condition, ConditionKind, RunFigures, TrialFigures, VariantFigures
from plinth.model.units import format_duration, format_size
from plinth.model.workload import WorkloadSpec


def run_figures(contents: BundleContents, analysis: Analysis) -> RunFigures:
    """Return the counted trials of each variant, in the plan's order, and what they were measured under."""
    results = {result.id: result for result in analysis.variants}
    manifest, experiment = contents.manifest, contents.plan.experiment
    return RunFigures(
        plinth_version=manifest.plinth_version,
        run_id=manifest.run_id,
        experiment=experiment.name,
        question=experiment.question,
        created_unix_ns=manifest.created_unix_ns,
        status=manifest.status,
        seed=experiment.measure.seed,
        conditions=(*run_conditions(contents), *load_conditions(contents.doctor)),
        variants=tuple(_variant(contents, variant, results[variant.id]) for variant in contents.plan.variants),
    )


def _variant(contents: BundleContents, variant: Variant, result: VariantResult) -> VariantFigures:
    contents_of = {one.trial.block: one for one in contents.trials if one.trial.variant == variant.id}
    counted = tuple(
        TrialFigures(
            block=point.block,
            tps=point.tps,
            latency_p50_ns=point.latency_p50_ns,
            latency_p95_ns=point.latency_p95_ns,
            latency_p99_ns=point.latency_p99_ns,
            others_cpu=point.others_cpu,
            steal=point.steal,
            in_time_tps=point.in_time_tps,
            kept=point.kept,
            statements=statement_times(contents_of[point.block], variant),
        )
        for point in result.trials
        if point.excluded is None and point.failure is None and point.tps
    )
    return VariantFigures(
        label=variant.label,
        levels=variant.levels,
        is_baseline=variant.is_baseline,
        is_aa_twin=variant.is_aa_twin,
        is_open_loop=variant.workload.is_open_loop,
        safety=result.safety.grade,
        safety_basis=result.safety.basis,
        conditions=variant_conditions(contents, variant),
        trials=counted,
        left_out=len(result.trials) - len(counted),
    )


_CLIENTS = {"clients", "threads"}
_DRIVER = {"driver", "protocol", "reconnect"}
_TABLESPACES = {"tablespace", "index_tablespace"}
"""Keys of a dataset that say where its tables are stored, and not what is in them."""


def run_conditions(contents: BundleContents) -> tuple[Condition, ...]:
    """Return what held for all variants of a run: the machine, versions, how it was measured."""
    host, measure = contents.host, contents.plan.experiment.measure
    engines = (trial.trial.engine for trial in contents.trials)
    drivers = dict.fromkeys(engine.driver for engine in engines if engine is not None and engine.driver is not None)
    found: dict[ConditionKind, dict[str, Any]] = {
        "measuring": {
            "warm-up": _warmup(measure),
            "measured time": format_duration(measure.duration_s),
            "order": measure.order,
            "fresh server": measure.fresh_server,
            "cache": measure.cache,
            "restore": measure.restore,
            "actions": [action.model_dump(mode="json") for action in measure.actions],
        },
        "versions": {
            "Plinth": contents.manifest.plinth_version,
            "Linux": host.kernel,
            "operating system": host.os,
            "driver": ", ".join(drivers),
        },
        "machine": {
            "CPU": host.cpu_model,
            "cores": host.cores,
            "memory": format_size(host.memory_total_bytes),
            **{fact.name: fact.value for fact in host.facts},
        },
    }
    return tuple(one for kind, values in found.items() for one in _conditions(kind, values))


def _warmup(measure: MeasureSpec) -> str:
    if measure.warmup_max_s is None:
        return format_duration(measure.warmup_s)
    window = format_duration(measure.steady_window_s)
    return f"{format_duration(measure.warmup_s)} to {format_duration(measure.warmup_max_s)}, until steady over {window}"


def variant_conditions(contents: BundleContents, variant: Variant) -> tuple[Condition, ...]:
    """Return what held for one variant: its workload, dataset, settings, storages and server."""
    cluster = contents.cluster_of(variant)
    dataset = cluster.dataset.model_dump(mode="json")
    files = {f"file {name}": _fingerprint(text) for name, text in contents.plan.dataset_files.items()}
    workload, server = _workload(variant), contents.servers.get(variant.id)
    found: dict[ConditionKind, dict[str, Any]] = {
        "workload": {key: value for key, value in workload.items() if key not in _CLIENTS | _DRIVER},
        "clients": {key: workload[key] for key in workload.keys() & _CLIENTS},
        "driver": {key: workload[key] for key in workload.keys() & _DRIVER},
        "dataset": {key: value for key, value in dataset.items() if key not in _TABLESPACES} | files,
        "storage": _storages(contents, variant) | {key: dataset[key] for key in dataset.keys() & _TABLESPACES},
        "settings": _settings(contents, variant) | {"listen": cluster.primary.server.listen},
        "versions": {"PostgreSQL": server.version if server else None},
    }
    return tuple(one for kind, values in found.items() for one in _conditions(kind, values))


def _workload(variant: Variant) -> dict[str, Any]:
    """Return the workload's keys that are not their defaults, and what its transactions are, regardless of the names of their files."""
    defaults = {name: field.get_default(call_default_factory=True) for name, field in WorkloadSpec.model_fields.items()}
    given = {
        name: value
        for name, value in variant.workload.model_dump(mode="json").items()
        if name in _CLIENTS | _DRIVER or getattr(variant.workload, name) != defaults[name]
    }
    given.pop("script", None)
    given.pop("replay", None)  # a path; what it holds is in the classes
    return given | {"transactions": ", ".join(_transaction(script) for script in variant.scripts)}


def _transaction(transaction: TransactionText) -> str:
    if isinstance(transaction, ScriptText):
        return f"{_fingerprint(transaction.source)} with weight {transaction.weight}"
    return _fingerprint(transaction.model_dump_json())


def _storages(contents: BundleContents, variant: Variant) -> dict[str, Any]:
    """Return, of each role, the storage as planned and the file system as it was found."""
    found: dict[str, Any] = {}
    for role, name in contents.cluster_of(variant).primary.roles.items():
        spec, facts = contents.plan.storages.get(name), contents.storages.get(name)
        if spec is not None:
            found |= {
                f"{role}: {key}": value for key, value in spec.model_dump(mode="json", exclude_defaults=True).items()
            }
            found[f"{role}: kind"] = spec.kind
        if facts is not None:
            found[f"{role}: file system"] = facts.filesystem
            found[f"{role}: mount options"] = ", ".join(facts.mount_options)
            found[f"{role}: size"] = format_size(facts.total_bytes)
            found[f"{role}: stored on"] = ", ".join(dict.fromkeys(node.kind for node in facts.stack))
    return found


def _settings(contents: BundleContents, variant: Variant) -> dict[str, Any]:
    """Return settings as they were read back; those that only say where a server is are left out."""
    server = contents.servers.get(variant.id)
    if server is None:
        return {}
    read = {one.name: setting_text(one.value, one.unit) for one in server.settings if one.name not in PLACES}
    return read | {
        "data_checksums": server.data_checksums,
        "memory limit": server.memory_limit_bytes and format_size(server.memory_limit_bytes),
    }


def _conditions(kind: ConditionKind, values: Mapping[str, Any]) -> Iterator[Condition]:
    for name, value in values.items():
        if value is not None and value != "" and value != []:
            yield Condition(kind=kind, name=name, value=_text(value))


def _text(value: object) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    return level_text(value) if isinstance(value, bool) else str(value)


def _fingerprint(text: str) -> str:
    """Return a short name of a text: equal texts have equal names."""
    return f"SHA-256 {hashlib.sha256(text.encode()).hexdigest()[:12]}"
