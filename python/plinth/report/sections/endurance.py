"""Bytes written by each variant and to each disk, and the resulting life of a drive; also for `plinth endurance`."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.text import Text

from plinth.model.base import Gap
from plinth.model.endurance import DeviceWritten, Flow, Rating, StorageWritten, VariantEndurance, Written
from plinth.model.figures import NOT_AVAILABLE, number, percent
from plinth.model.report import Report
from plinth.model.units import format_decimal_size, format_size
from plinth.model.wear import SmartReading
from plinth.report.sections.section import Block, Bullets, Entry, Section, Table, entry
from plinth.report.text import figure

_FLOWS: dict[Flow, str] = {
    "data": "data",
    "wal": "WAL, generated",
    "wal_written": "WAL, as written",
    "full_page_images": "full-page images, at most",
}
_HEADS = ("Variant", "Written", "Per transaction", "Per day", "Amplification", "Drive life")


class WrittenRow(NamedTuple):
    """Bytes written of one kind or to one place; each figure has its interval, and is "" if it does not apply."""

    name: str
    of_transaction: str
    of_day: str
    amplification: str
    life: str


def written_rows(account: VariantEndurance) -> Iterator[WrittenRow]:
    """Yield rows of PostgreSQL itself, then of the storages, then of every device below them."""
    for flow in account.flows:
        share = _share_of_wal(account) if flow.flow == "full_page_images" else ""
        yield WrittenRow(f"PostgreSQL: {_FLOWS[flow.flow]}{share}", *_figures(flow), "", "")
    for storage in account.storages:
        ratio = figure(storage.amplification, lambda value: f"{value:.2f}x")
        yield WrittenRow(storage_name(storage), *_figures(storage), ratio, "")
    for device in account.devices:
        yield WrittenRow(_device_name(device), *_figures(device), "", figure(device.life_years, years))


def storage_name(storage: StorageWritten) -> str:
    """Name the storages, the parts of the cluster that they store, and the devices directly below."""
    return f"storage {', '.join(storage.storages)} ({', '.join(storage.roles)}): {', '.join(storage.devices)}"


def _device_name(device: DeviceWritten) -> str:
    uses = f"; ZFS {', '.join(device.uses)}" if device.uses else ""
    return f"device {device.device} ({', '.join(device.roles)}{uses})"


def rating_sentence(rating: Rating | None) -> str:
    """Explain how the lives of drives were computed, or what is missing to compute them."""
    if rating is None:
        return "Drive life: n/a: the experiment has no [drive] table. `plinth endurance` takes --tbw 600TB, or --pe-cycles 5000 --capacity 300GB."
    return f"Drive life: of a drive {rating.source}, written at this rate day and night."


def written_sentence(account: VariantEndurance) -> str:
    """Return one line: bytes written to each storage, its device that wears out first, and any lower device that does so sooner."""
    places = [
        f"{figure(storage.bytes_per_transaction, format_decimal_size)} per transaction, "
        f"{format_decimal_size(storage.bytes_per_day.value)} per day to {storage_name(storage)}"
        for storage in account.storages
    ]
    if not places:
        reason = next((gap.reason for gap in account.gaps if "devices of storage" in gap.what), None)
        places = [f"{NOT_AVAILABLE}: {reason or 'no device was counted'}"]
    return "; ".join([*places, *_lasts(account)])


def written_caveats(account: VariantEndurance) -> Iterator[str]:
    """Yield what must be known of a device's figures: that most of what it wrote is not PostgreSQL's."""
    yield from (device.caveat for device in account.devices if device.caveat is not None)


def _lasts(account: VariantEndurance) -> Iterator[str]:
    """Yield the lives of devices, those of the storages first, since others also write to the host's disk."""
    lives = {device.device: life.value for device in account.devices if (life := device.life_years) is not None}
    own = {device for storage in account.storages for device in storage.devices}
    above = min((device for device in lives if device in own), key=lives.__getitem__, default=None)
    below = min((device for device in lives if device not in own), key=lives.__getitem__, default=None)
    if above is not None:
        yield f"a drive in place of {above} lasts {years(lives[above])}"
    if below is not None and (above is None or lives[below] < lives[above]):
        yield f"in place of {below} below it, including other writes, {years(lives[below])}"


def written_gaps(accounts: Iterable[VariantEndurance]) -> Iterator[str]:
    """Yield gaps with their reasons; a gap that several variants share is listed once, with their labels."""
    variants: dict[Gap, list[str]] = {}
    for account in accounts:
        for gap in account.gaps:
            variants.setdefault(gap, []).append(account.label)
    for gap, labels in variants.items():
        yield f"{', '.join(labels)}: {gap.what}: {NOT_AVAILABLE}: {gap.reason}"


def years(life_years: float) -> str:
    """Format a life: 15 y, 7.6 y, 12 days."""
    if life_years < 0.1:
        return f"{number(life_years * 365.25)} days"
    return f"{life_years:,.0f} y" if life_years >= 10 else f"{life_years:.1f} y"


def _figures(written: Written) -> tuple[str, str]:
    """Format bytes per transaction and per day."""
    return figure(written.bytes_per_transaction, format_decimal_size), figure(
        written.bytes_per_day, format_decimal_size
    )


def _share_of_wal(account: VariantEndurance) -> str:
    """State the upper bound of the share of full-page images in the WAL."""
    sizes = {flow.flow: flow.bytes_per_transaction.value for flow in account.flows}
    return f": {percent(sizes['full_page_images'] / sizes['wal'], 0)} of the WAL" if sizes.get("wal") else ""


def _blocks(report: Report) -> list[Block]:
    accounts = [variant.endurance for variant in report.analysis.variants if variant.endurance is not None]
    rows = [(account.label, *row) for account in accounts for row in written_rows(account)]
    if not rows:
        return []
    return [
        Table(_HEADS, rows),
        f"{ENDURANCE.note} {report.drive_life}",
        Bullets([f"{account.label}: caveat: {caveat}" for account in accounts for caveat in written_caveats(account)]),
        Bullets(list(written_gaps(accounts))),
    ]


def _entries(report: Report) -> list[Entry]:
    """List the bytes of each variant by storage, if any storage was counted."""
    accounts = [
        variant.endurance
        for variant in report.analysis.variants
        if variant.endurance is not None and variant.endurance.flows and not variant.is_aa_twin
    ]
    if not any(account.storages for account in accounts):
        return []
    return [
        [
            *entry(account.label, written_sentence(account)),
            *(Text(f"  caveat: {caveat}", style="yellow") for caveat in written_caveats(account)),
        ]
        for account in accounts
    ]


ENDURANCE = Section(
    id="endurance",
    title="Endurance",
    note="Medians of the trials' measured phases with their 95 % intervals; bytes per day assume the rate shown. "
    "Amplification: bytes written by the devices directly below the file system for each byte that PostgreSQL wrote to "
    "what is stored on them. A disk that others use counts their writes, too; devices on top of one another each count "
    "the same bytes.",
    blocks=_blocks,
    entries=_entries,
    heading=lambda report: "Written by variant",
)


def endurance_used(reading: SmartReading | None) -> str:
    """Format the used share of a drive's rated endurance: "3 %"; "n/a" where the drive does not report it."""
    if reading is None or reading.percentage_used is None:
        return NOT_AVAILABLE
    return f"{reading.percentage_used:g} %"


def _wear_blocks(report: Report) -> list[Block]:
    rows = [
        (
            disk.disk,
            disk.model or NOT_AVAILABLE,
            ", ".join(disk.storages),
            format_size(disk.written_bytes),
            " to ".join(endurance_used(reading) for reading in (disk.before, disk.after)),
        )
        for disk in (report.wear.disks if report.wear else ())
    ]
    return [Table(("Disk", "Model", "Storages", "Written", "Endurance used"), rows)]


WEAR = Section(
    id="wear",
    title="Written to disks",
    note="From the kernel's counters, which include the writes of other programs.",
    blocks=_wear_blocks,
)
