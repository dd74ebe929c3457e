"""Renders the report as Markdown, for an issue, a wiki or a commit message."""

from plinth.common.shown import shown
from plinth.model.doctor import Remedy
from plinth.model.figures import NOT_AVAILABLE, number, percent
from plinth.model.report import PublishedBeside, Report, SettingRow
from plinth.model.units import format_duration, format_size
from plinth.report.commits import commit_row
from plinth.report.flashbacks import FLASHBACK_HEADS, flashback_row
from plinth.report.markdown_text import bullets as _list
from plinth.report.markdown_text import plain as _text
from plinth.report.markdown_text import section as _section
from plinth.report.markdown_text import table as _table
from plinth.report.new_orders import NEW_ORDER_HEADS, deviation_texts, new_order_rows
from plinth.report.objectives import OBJECTIVE_HEADS, outcome_text
from plinth.report.pareto import PARETO_HEADS
from plinth.report.sweep import CURVE_HEADS, EFFECT_HEADS
from plinth.report.text import (
    bottleneck,
    client_cpu,
    commits,
    endurance_used,
    group_io,
    latency,
    latency_pair,
    mean_latency,
    published_fact,
    published_ratio,
    rate,
    ratio,
    ratio_notes,
    ratio_of,
    server_work,
    top_waits,
    variant_name,
    verdict,
)
from plinth.report.transactions import TYPE_HEADS, type_rows
from plinth.report.written import HEADS, written_caveats, written_gaps, written_rows

_MARKS = {"yes": "yes", "partly": "partly", "no": "**no**"}


def render_markdown(report: Report) -> str:
    """Render question, answer, ranking, differences, warnings, gaps, reproduction and disclosure list."""
    analysis, titles = report.analysis, report.sections
    sections = [
        f"# {_text(analysis.experiment)}",
        f"{_text(report.run.altered)}\n\n**{_text(analysis.question)}**".lstrip(),
        _text(analysis.answer),
        ranking_table(report),
        _text(report.ranking),
        _groups(report),
        _list(ratio_notes(analysis)),
        _text(report.noise),
        _section(titles.objectives.title, _objectives(report)),
        _section(titles.sweep.title, _scaling(report)),
        _section(titles.pareto.title, _trade_offs(report)),
        _section(titles.published.title, _published(report.published)),
        _section("Differences between variants", _differences(report)),
        _section(titles.durability.title, _durability(report)),
        _section("State at the beginning of the trials", _list(analysis.preparations)),
        _section(titles.new_orders.title, _new_orders(report)),
        _section(titles.transactions.title, _transactions(report)),
        _section(titles.bottlenecks.title, _bottlenecks(report)),
        _section(titles.server_work.title, _work(report)),
        _section(titles.process_io.title, _process_io(report)),
        _section("Schedule", _schedule(report)),
        _section(titles.ceilings.title, _ceilings(report)),
        _section(titles.io.title, _io(report)),
        _section(titles.loaded.title, _loaded(report)),
        _section(titles.standbys.title, _standbys(report)),
        _section(titles.network.title, _links(report)),
        _section(titles.commits.title, _commits(report)),
        _section(titles.outages.title, _outages(report)),
        _section(titles.flashbacks.title, _flashbacks(report)),
        _section(titles.machines.title, _machines(report)),
        _section(titles.endurance.title, _endurance(report)),
        _section(titles.wear.title, _wear(report)),
        _section("Machine before the run", _doctor(report)),
        _section("Warnings", _list(analysis.warnings)),
        _section("Not available", _list(f"{gap.where}: {gap.what}: n/a: {gap.reason}" for gap in report.gaps)),
        _section("Run it again", _reproduction(report)),
        _section("Disclosure", _list(f"{_MARKS[d.status]}: {d.claim} ({d.evidence})" for d in report.disclosures)),
    ]
    return shown("\n\n".join(section for section in sections if section) + "\n")


def _io(report: Report) -> str:
    rows = [
        (
            figure.storage,
            figure.moment,
            figure.job,
            figure.side or "",
            *(
                [f"{NOT_AVAILABLE}: {figure.unavailable}", "", "", ""]
                if figure.iops is None or figure.bytes_per_s is None
                else [
                    number(figure.iops),
                    number(figure.bytes_per_s / 1e6),
                    NOT_AVAILABLE if figure.latency_p50_ns is None else latency(figure.latency_p50_ns),
                    NOT_AVAILABLE if figure.latency_p99_ns is None else latency(figure.latency_p99_ns),
                ]
            ),
        )
        for figure in report.io
    ]
    return _table(("Storage", "When", "Job", "Operation", "IOPS", "MB/s", "p50", "p99"), rows) if rows else ""


def ranking_table(report: Report) -> str:
    """Return the table of all variants: throughput, ratio, latency, cost, safety and verdict."""
    analysis = report.analysis
    comparisons = {comparison.variant: comparison for comparison in analysis.comparisons}
    grouped = any(variant.group for variant in analysis.variants)
    rows = []
    for variant in analysis.variants:
        comparison = comparisons.get(variant.id)
        rows.append(
            (
                str(variant.rank or NOT_AVAILABLE),
                variant_name(variant),
                *([variant.group or ""] if grouped else []),
                rate(variant.tps),
                ratio_of(comparison) if comparison else "",
                latency_pair(variant.latency),
                client_cpu(variant),
                commits(variant),
                verdict(comparison),
            )
        )
    heads = (
        "Rank",
        "Variant",
        *(["Group"] if grouped else []),
        "tps, median [interval]",
        "Ratio to baseline",
        "Latency p50 / p99",
        "Client CPU per transaction",
        "Commits",
        "Verdict",
    )
    if analysis.sweep is not None and all(variant.rank is None for variant in analysis.variants):
        return _table(heads[1:], [row[1:] for row in rows])  # levels of a numeric factor have no rank
    return _table(heads, rows)


def _groups(report: Report) -> str:
    """Explain the groups, and list the variants that are in none."""
    return "\n\n".join(map(_text, report.group_notes))


def _objectives(report: Report) -> str:
    rows = [(one.requirement, one.variant, one.figure, outcome_text(one)) for one in report.objectives]
    return f"{_table(OBJECTIVE_HEADS, rows)}\n\n{_text(report.sections.objectives.note)}" if rows else ""


def _scaling(report: Report) -> str:
    rows = [(one.name, one.throughput, one.knee, one.law) for one in report.curves]
    parts = [f"{_table(CURVE_HEADS, rows)}\n\n{_text(report.sections.sweep.note)}"] if rows else []
    if (ratios := report.ratios) is not None:
        heads = (f"Ratio to {ratios.baseline}", *ratios.columns)
        cells = [
            (row.stratum, *(NOT_AVAILABLE if one is None else f"{one.ratio} {one.verdict}" for one in row.cells))
            for row in ratios.rows
        ]
        parts.append(_table(heads, cells))
    if report.effects:
        effects = [(one.effect, one.ratio) for one in report.effects]
        parts.append(f"{_table(EFFECT_HEADS, effects)}\n\n{_text(report.sections.effects.note)}")
    elif report.effects_missing:
        parts.append(_text(f"Effects of factors: {NOT_AVAILABLE}: {report.effects_missing}."))
    return "\n\n".join(parts)


def _trade_offs(report: Report) -> str:
    rows = [(one.variant, one.tps, one.latency_p99, one.written, one.commits, one.standing) for one in report.pareto]
    if not rows:
        return _list(report.pareto_gaps)
    notes = filter(None, (report.pareto_summary, report.sections.pareto.note, *report.pareto_gaps))
    return f"{_table(PARETO_HEADS, rows)}\n\n{_text(' '.join(notes))}"


def _differences(report: Report) -> str:
    labels = {variant.id: variant.label for variant in report.analysis.variants}

    def cells(row: SettingRow) -> str:
        known = [f"{cell.text} ({', '.join(labels[variant] for variant in cell.variants)})" for cell in row.cells]
        unread = [f"{NOT_AVAILABLE} ({', '.join(labels[variant] for variant in row.unread)})"] if row.unread else []
        return "; ".join([*known, *unread])

    differing = [row for row in report.settings if row.kind != "place" and (len(row.cells) > 1 or row.unread)]
    return _table(("Name", "Values"), [(row.name, cells(row)) for row in differing]) if differing else ""


def _durability(report: Report) -> str:
    rows = [
        (
            variant.label,
            f"{test.made} of {test.planned}",
            str(test.dropped),
            str(test.damaged),
            NOT_AVAILABLE if test.damaged_share_at_most is None else percent(test.damaged_share_at_most, 1),
            f"{test.lost_commits} of {test.acknowledged}{f', {test.most_lost}' if test.lost_commits else ''}",
            ", ".join(f"{kind}: {count}" for kind, count in test.kinds.items()) or "none",
        )
        for variant in report.analysis.variants
        if (test := variant.durability) is not None
    ]
    if not rows:
        return ""
    heads = ("Variant", "Cuts", "Dropped something", "Damaged", "At most (95 %)", "Commits lost", "Damage, in cuts")
    examples = [
        f"{variant.label}, cut {cut.number} ({cut.mode}, in {cut.moment}): {damage.kind} ({damage.count}): {damage.evidence[0]}"
        for variant in report.analysis.variants
        if variant.durability is not None
        for cut in variant.durability.examples
        for damage in cut.damage
    ]
    missing = [
        f"{variant.label}: {gap.what}: {NOT_AVAILABLE}: {gap.reason}"
        for variant in report.analysis.variants
        if variant.durability is not None
        for gap in (*variant.durability.not_checked, *variant.durability.gaps)
    ]
    controls = "" if report.analysis.cut_controls is None else _text(report.analysis.cut_controls.sentence)
    return "\n\n".join(filter(None, (_table(heads, rows), controls, _list(examples), _list(missing))))


def _new_orders(report: Report) -> str:
    """NOPM of the TPC-C-derived workload, the notice and the deviations."""
    if report.tpcc is None:
        return ""
    rows = [(variant_name(variant), nopm, part) for variant, nopm, part in new_order_rows(report.analysis)]
    figures = f"{_table(NEW_ORDER_HEADS, rows)}\n\n{_text(report.sections.new_orders.note)}" if rows else ""
    listed = f"Deviations from the specification, by the options of this run:\n\n{_list(deviation_texts(report.tpcc))}"
    return "\n\n".join(filter(None, (figures, _text(report.tpcc.notice), listed)))


def _transactions(report: Report) -> str:
    """Each type of transaction of each variant, where there are several."""
    rows = [(variant_name(variant), *row) for variant in report.analysis.variants for row in type_rows(variant)]
    return f"{_table(TYPE_HEADS, rows)}\n\n{_text(report.sections.transactions.note)}" if rows else ""


def _bottlenecks(report: Report) -> str:
    """Bottlenecks of the variants, and the CPU time of the observer."""
    rows = [(variant_name(variant), bottleneck(variant), top_waits(variant)) for variant in report.analysis.variants]
    heads = ("Variant", "Bottleneck", "Mean backends per wait event, from pg_stat_activity")
    return f"{_table(heads, rows)}\n\n{_text(f'{report.sections.bottlenecks.note} {report.observation}')}"


def _published(beside: PublishedBeside | None) -> str:
    """Published figures beside ours, absolute and as ratios, with their source."""
    if beside is None:
        return ""
    of = beside.reference
    parts = [
        f"{_text(of.title)}. {_text(of.source)}{f' ({of.url})' if of.url else ''}. {_text(of.machine)}. {_text(of.conditions)}.",
        published_tables(beside),
        _list(
            [
                *(f"{row.what}: {published_fact(row)}" for row in beside.facts),
                *of.finding,
                *(f"{fact.what}: {number(fact.value)} {fact.unit}" for fact in of.fact if fact.measured_by is None),
            ]
        ),
        _text(beside.other_figures),
    ]
    return "\n\n".join(part for part in parts if part)


def published_tables(beside: PublishedBeside) -> str:
    """Return a table of published figures and one of published ratios beside ours, where the study has some."""
    return "\n\n".join(filter(None, (_published_figures(beside), _published_ratios(beside))))


def _published_figures(beside: PublishedBeside) -> str:
    rows = [
        (
            row.label + (f" (for {row.stands_for})" if row.stands_for else ""),
            number(row.published_tps),
            rate(row.tps) if row.variant else f"{NOT_AVAILABLE}: not measured here",
            NOT_AVAILABLE if row.published_ratio is None else f"{number(row.published_ratio)}x",
            ratio(row.ratio) if row.ratio else NOT_AVAILABLE,
            mean_latency(row.published_latency_ns, row.published_latency_stddev_ns),
            mean_latency(row.latency_ns, row.latency_stddev_ns),
            row.note or "",
        )
        for row in beside.figures
    ]
    heads = (
        "Variant",
        "tps, published",
        "tps, ours",
        "Ratio to baseline, published",
        "Ratio to baseline, ours",
        "Mean latency ± standard deviation, published",
        "Mean latency ± standard deviation, ours",
        "Note",
    )
    return _table(heads, rows) if rows else ""


def _published_ratios(beside: PublishedBeside) -> str:
    rows = [
        (
            row.what + (f" (for {row.stands_for})" if row.stands_for else ""),
            f"{row.variant} / {row.to}" if row.variant else f"{NOT_AVAILABLE}: not measured here",
            published_ratio(row),
            ratio(row.ratio) if row.ratio else NOT_AVAILABLE,
            row.note or "",
        )
        for row in beside.ratios
    ]
    return _table(("Finding", "Our variants", "Ratio, published", "Ratio, ours", "Note"), rows) if rows else ""


def _work(report: Report) -> str:
    rows = [(variant_name(variant), *server_work(variant)) for variant in report.analysis.variants]
    return _table(("Variant", "WAL", "Full-page images", "Buffer hits"), rows)


def _process_io(report: Report) -> str:
    rows = [(variant_name(variant), *row) for variant in report.analysis.variants for row in group_io(variant)]
    if not rows:
        return ""
    table = _table(("Variant", "Processes", "Read from storage", "Written"), rows)
    return f"{table}\n\n{_text(report.sections.process_io.note)}"


def _schedule(report: Report) -> str:
    """Open loops: scheduled, completed and late transactions."""
    rows = [
        (
            variant_name(variant),
            *(f"{count:,}" for count in (loop.scheduled, loop.done, loop.skipped, loop.late, loop.open)),
            latency_pair(loop.service),
            latency_pair(loop.schedule_lag),
        )
        for variant in report.analysis.variants
        if (loop := variant.open_loop) is not None
    ]
    heads = ("Variant", "Due", "Done", "Skipped", "Late", "Left open", "Service p50 / p99", "Schedule lag p50 / p99")
    return _table(heads, rows) if rows else ""


def _ceilings(report: Report) -> str:
    """The commit rate that each variant's storage permits, and the share of it that was reached."""
    rows = []
    for variant in report.analysis.variants:
        of = variant.ceiling
        if of is None:
            continue
        if of.unavailable is not None or of.one_client_per_s is None or of.flush_median_ns is None:
            rows.append((variant_name(variant), f"{NOT_AVAILABLE}: {of.unavailable}", "", "", ""))
            continue
        flush = f"{latency(of.flush_median_ns)} ({of.method} on {of.storage})"
        reached = NOT_AVAILABLE if of.reached is None else percent(of.reached, 0)
        of_all = f"{number(of.clients_per_s or 0)} of {of.clients}"
        rows.append((variant_name(variant), flush, number(of.one_client_per_s), of_all, reached))
    heads = ("Variant", "Flush, median", "One client, commits/s", "All clients, commits/s", "Reached")
    return _table(heads, rows) if rows else ""


def _standbys(report: Report) -> str:
    """How each standby was made and found, and how far it was behind."""
    rows = [
        (one.name, one.upstream, one.storage, one.backup, one.states, one.lag, one.survival) for one in report.standbys
    ]
    heads = ("Standby", "From", "Storage", "Base backup", "Synchronous state", "Lag", "What commits survive")
    return _table(heads, rows) if rows else ""


def _commits(report: Report) -> str:
    """What commits that wait for standbys take, predicted and measured."""
    rows = [commit_row(one) for one in report.analysis.commit_models]
    return _table(("Variant", "Commit, median", "Predicted", "Error", "Of which"), rows) if rows else ""


def _links(report: Report) -> str:
    """How each link of the emulated network was, and what was measured there."""
    rows = [(one.link, one.asked, str(one.trials), one.round_trip, one.packets) for one in report.links]
    return _table(("Link", "Asked", "Trials", "Round trip", "Packets"), rows) if rows else ""


def _machines(report: Report) -> str:
    """How each machine of a fleet drove its part of the load."""
    rows = [
        (one.variant, one.machine, str(one.trials), str(one.clients), one.done, one.latency, one.busy, one.start)
        for one in report.machines
    ]
    return _table(("Variant", "Machine", "Trials", "Clients", "Done", "Latency", "Busy", "Start"), rows) if rows else ""


def _outages(report: Report) -> str:
    """What faults of servers cost."""
    rows = [
        (one.variant, str(one.trials), one.faults, one.gap, one.parts, one.lost, one.rejoin) for one in report.outages
    ]
    heads = ("Variant", "Trials", "Faults", "Without writes", "Parts", "Commits", "Old primary")
    return _table(heads, rows) if rows else ""


def _flashbacks(report: Report) -> str:
    """What going back to snapshots restored."""
    return _table(FLASHBACK_HEADS, [flashback_row(one) for one in report.flashbacks]) if report.flashbacks else ""


def _loaded(report: Report) -> str:
    """The dataset of each cluster: load time, rows, sizes, and height of the key's index."""
    rows = [
        (
            loaded.cluster,
            format_duration(loaded.load_s),
            table.name,
            number(table.rows),
            format_size(table.size_bytes),
            "; ".join(f"{index.name} {format_size(index.size_bytes)}" for index in table.indexes),
            ", ".join(NOT_AVAILABLE if index.levels is None else str(index.levels) for index in table.indexes),
            ", ".join(str(index.lookup_buffers) for index in table.indexes if index.lookup_buffers is not None),
        )
        for loaded in report.datasets
        for table in loaded.tables
    ]
    heads = (
        "Cluster",
        "Loaded in",
        "Table",
        "Rows",
        "Size",
        "Indexes",
        "Levels above leaves",
        "Pages per lookup",
    )
    return _table(heads, rows) if rows else ""


def _endurance(report: Report) -> str:
    """Bytes that each variant wrote, by purpose and device, and the resulting life of a drive."""
    accounts = [variant.endurance for variant in report.analysis.variants if variant.endurance is not None]
    rows = [(account.label, *row) for account in accounts for row in written_rows(account)]
    if not rows:
        return ""
    parts = (
        _table(("Variant", *HEADS), rows),
        _text(f"{report.sections.endurance.note} {report.drive_life}"),
        _list(f"{account.label}: caveat: {caveat}" for account in accounts for caveat in written_caveats(account)),
        _list(written_gaps(accounts)),
    )
    return "\n\n".join(part for part in parts if part)


def _wear(report: Report) -> str:
    if report.wear is None or not report.wear.disks:
        return ""
    rows = [
        (
            disk.disk,
            disk.model or NOT_AVAILABLE,
            ", ".join(disk.storages),
            format_size(disk.written_bytes),
            " to ".join(endurance_used(reading) for reading in (disk.before, disk.after)),
        )
        for disk in report.wear.disks
    ]
    return _table(("Disk", "Model", "Storages", "Written", "Endurance used"), rows)


def _doctor(report: Report) -> str:
    """Warnings and problems that the doctor found before the run, with their remedies."""
    rows = [
        (finding.severity, finding.about, finding.saw, _remedy(finding.remedy))
        for examination in (report.doctor.examinations if report.doctor else ())
        for finding in examination.at_least("warning")
    ]
    return _table(("Severity", "About", "Found", "Remedy"), rows) if rows else ""


def _remedy(remedy: Remedy | None) -> str:
    return NOT_AVAILABLE if remedy is None else "; ".join(filter(None, (*remedy.commands, remedy.advice)))


def _reproduction(report: Report) -> str:
    versions = ", ".join(f"{version.name} {version.version}" for version in report.reproduction.versions)
    commands = "\n".join(report.reproduction.commands)
    toml = report.reproduction.experiment_toml.strip()
    fence = "`" * max(3, 1 + _longest_run(toml, "`"))
    return f"{fence}sh\n{commands}\n{fence}\n\n{_text(versions)}; seed {report.reproduction.seed}.\n\n{fence}toml\n{toml}\n{fence}"


def _longest_run(text: str, character: str) -> int:
    longest = run = 0
    for each in text:
        run = run + 1 if each == character else 0
        longest = max(longest, run)
    return longest
