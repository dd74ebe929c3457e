"""Factors and settings in which variants differ; variants with equal values are grouped."""

from collections.abc import Mapping, Sequence

from plinth.model.facts import PLACES, ServerFacts, Setting
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.level import level_text
from plinth.model.pg_units import setting_text
from plinth.model.plan import Variant
from plinth.model.report import Report, SettingCell, SettingRow
from plinth.report.sections.section import Section, Table


def setting_rows(variants: Sequence[Variant], servers: Mapping[str, ServerFacts]) -> tuple[SettingRow, ...]:
    """Return factors, then settings, those that differ between variants first; paths come last."""
    settings = {variant: {s.name: s for s in facts.settings} for variant, facts in servers.items()}
    names = sorted({name for of_variant in settings.values() for name in of_variant})
    rows = [_setting_row(name, variants, settings) for name in names]
    factors = dict.fromkeys(name for variant in variants for name in variant.levels)
    return (
        *(_factor_row(name, variants) for name in factors),
        *sorted(rows, key=lambda row: (row.kind == "place", len(row.cells) == 1 and not row.unread)),
    )


def _factor_row(name: str, variants: Sequence[Variant]) -> SettingRow:
    cells = _Cells()
    for variant in variants:
        if name in variant.levels:
            cells.add(level_text(variant.levels[name]), "level", variant.id)
    return SettingRow(name=name, kind="factor", default=None, cells=cells.rows(), unread=())


def _setting_row(name: str, variants: Sequence[Variant], settings: Mapping[str, Mapping[str, Setting]]) -> SettingRow:
    """Return the row of a setting. A variant whose list lacks it has the default, since lists hold all others."""
    known = [of_variant[name] for of_variant in settings.values() if name in of_variant]
    default = next((setting_text(s.boot_value, s.unit) for s in known if s.boot_value is not None), None)
    cells = _Cells()
    unread: list[str] = []
    for variant in variants:
        setting = settings.get(variant.id, {}).get(name)
        if setting is not None:
            cells.add(setting_text(setting.value, setting.unit), setting.source, variant.id)
        elif variant.id in settings and default is not None:
            cells.add(default, "default", variant.id)
        else:
            unread.append(variant.id)
    kind = "place" if name in PLACES else "setting"
    return SettingRow(name=name, kind=kind, default=default, cells=cells.rows(), unread=tuple(unread))


class _Cells:
    """Groups variants by value, regardless of its source."""

    def __init__(self) -> None:
        self._variants: dict[str, list[str]] = {}
        self._sources: dict[str, dict[str, None]] = {}

    def add(self, text: str, source: str, variant: str) -> None:
        self._variants.setdefault(text, []).append(variant)
        self._sources.setdefault(text, {})[source] = None

    def rows(self) -> tuple[SettingCell, ...]:
        return tuple(
            SettingCell(text=text, source=", ".join(self._sources[text]), variants=tuple(variants))
            for text, variants in self._variants.items()
        )


def _blocks(report: Report) -> list[Table]:
    labels = {variant.id: variant.label for variant in report.analysis.variants}

    def cells(row: SettingRow) -> str:
        known = [f"{cell.text} ({', '.join(labels[variant] for variant in cell.variants)})" for cell in row.cells]
        unread = [f"{NOT_AVAILABLE} ({', '.join(labels[variant] for variant in row.unread)})"] if row.unread else []
        return "; ".join([*known, *unread])

    differing = [row for row in report.settings if row.kind != "place" and (len(row.cells) > 1 or row.unread)]
    return [Table(("Name", "Values"), [(row.name, cells(row)) for row in differing])]


DIFFERENCES = Section(id="differences", title="Differences between variants", blocks=_blocks)
