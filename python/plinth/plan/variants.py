"""From factors to variants, and from variants to the clusters that they share."""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

from plinth.model.experiment import DatasetSpec, Experiment, Level, ServerSpec, WorkloadSpec, with_levels
from plinth.model.plan import ScriptText, Variant

_UNITS = {"workload.clients": "clients", "workload.threads": "threads", "dataset.scale": "scale"}


@dataclass(frozen=True)
class ClusterKey:
    """What a data directory is made of; variants that agree in it share one."""

    id: str
    server: ServerSpec
    dataset: DatasetSpec


def expand(
    experiment: Experiment, scripts_of: Callable[[WorkloadSpec], tuple[ScriptText, ...]]
) -> tuple[list[Variant], list[ClusterKey]]:
    """Every combination of levels as a variant, in the order of the file; the A/A twin comes last."""
    document = experiment.model_dump(by_alias=True, exclude_none=True)
    default_storage = next(iter(experiment.storage), None)
    combinations = [
        dict(zip(experiment.matrix, levels, strict=True)) for levels in itertools.product(*experiment.matrix.values())
    ]
    baseline = {factor: levels[0] for factor, levels in experiment.matrix.items()} | experiment.measure.baseline
    clusters: dict[str, ClusterKey] = {}
    variants: list[Variant] = []
    for levels in combinations:
        resolved = Experiment.model_validate(with_levels(document, levels), by_alias=True, by_name=False)
        server = resolved.server
        if server.connection is None and server.storage is None:
            server = server.model_copy(update={"storage": default_storage})
        made_of = server.model_copy(update={"settings": {}})
        key = made_of.model_dump_json() + resolved.dataset.model_dump_json()
        if key not in clusters:
            number = len(clusters) + 1
            clusters[key] = ClusterKey(f"{number}-{server.storage or 'external'}", made_of, resolved.dataset)
        label = _label(levels) or server.storage or "external"
        variants.append(
            Variant(
                id=_unique(_slug(label), [variant.id for variant in variants]),
                label=label,
                levels=levels,
                cluster=clusters[key].id,
                settings=server.settings,
                workload=resolved.workload,
                scripts=scripts_of(resolved.workload),
                is_baseline=levels == baseline,
            )
        )
    if experiment.measure.aa:
        variants.append(_twin(next(variant for variant in variants if variant.is_baseline)))
    return _with_connections(variants), list(clusters.values())


def _twin(baseline: Variant) -> Variant:
    return baseline.model_copy(
        update={
            "id": f"{baseline.id}-aa",
            "label": f"{baseline.label} (A/A)",
            "is_baseline": False,
            "is_aa_twin": True,
        }
    )


def _with_connections(variants: list[Variant]) -> list[Variant]:
    """The variants with room for all clients: max_connections is the same in all, unless a variant sets it."""
    most = max(variant.workload.clients for variant in variants)
    if most + SPARE_CONNECTIONS <= DEFAULT_MAX_CONNECTIONS:
        return variants
    room = most + SPARE_CONNECTIONS
    return [
        variant.model_copy(update={"settings": {"max_connections": room} | variant.settings}) for variant in variants
    ]


DEFAULT_MAX_CONNECTIONS = 100
SPARE_CONNECTIONS = 20
"""For superuser_reserved_connections, Plinth's control connections and the observer."""


def _label(levels: dict[str, Level]) -> str:
    parts = []
    for factor, level in levels.items():
        if factor in _UNITS:
            parts.append(f"{level} {_UNITS[factor]}" if factor != "dataset.scale" else f"scale {level}")
        elif factor.startswith("server.settings."):
            parts.append(f"{factor.removeprefix('server.settings.')}={_word(level)}")
        elif factor == "server.version":
            parts.append(f"PostgreSQL {level}")
        else:
            parts.append(_word(level))
    return ", ".join(parts)


def _word(level: Level) -> str:
    """A level as PostgreSQL and people write it: booleans are on and off."""
    return {True: "on", False: "off"}[level] if isinstance(level, bool) else str(level)


def _slug(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:60].strip("-") or "variant"


def _unique(slug: str, taken: list[str]) -> str:
    return next(
        name for name in itertools.chain([slug], (f"{slug}-{n}" for n in itertools.count(2))) if name not in taken
    )
