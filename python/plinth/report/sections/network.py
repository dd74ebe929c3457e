"""The links of the emulated network in words: what was asked of each, and what was measured before and during the loads."""

from collections.abc import Iterator, Sequence
from statistics import median

from plinth.model.contents import BundleContents
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.network import Lateness, LinkSettings, MeasuredLink
from plinth.model.report import LinkText
from plinth.model.units import format_count, format_duration
from plinth.report.sections.section import Section, sentences_of, table_of

_EXACT_S = 100e-6
_EXACT_SHARE = 0.02
"""How exact the emulation is to be, one way: 100 us or 2 % of the delay, whichever is more."""
_BYTES = 64
"""Of a packet of the measurement."""


def link_texts(contents: BundleContents) -> tuple[LinkText, ...]:
    """Describe every link that replication used, once for each way in which it was asked to be, in the order of the trials."""
    alike: dict[tuple[str, str], list[MeasuredLink]] = {}
    for one in contents.trials:
        for link in one.trial.network.links if one.trial.network is not None else ():
            alike.setdefault((f"{link.upstream} to {link.standby}", _asked(link)), []).append(link)
    late = [one.trial.network.lateness for one in contents.trials if one.trial.network is not None]
    ordered = sorted(alike.items(), key=lambda item: (item[0][0], item[1][0].asked_round_trip_ns))
    of_links = (
        LinkText(link=name, asked=asked, trials=len(links), round_trip=_round_trip(links), packets=_packets(links))
        for (name, asked), links in ordered
    )
    return (*of_links, *_of_all(late))


def _of_all(late: Sequence[Lateness]) -> Iterator[LinkText]:
    """Say how late packets came during the loads: of the network that had the most, since a resumed run has made another."""
    most = max(late, key=lambda one: one.packets, default=None)
    if most is None or not most.packets:
        return
    p50, p99, longest = (format_duration(ns / 1e9) for ns in (most.p50_ns, most.p99_ns, most.max_ns))
    words = f"{most.packets:,} packets, late by {p50} (median), {p99} (p99), {longest} at most"
    yield LinkText(link="all links", asked="", trials=len(late), round_trip="", packets=words)


def link_sentence(text: LinkText) -> str:
    """Return what the terminal says of a link."""
    measured = [text.asked, text.round_trip and f"round trip {text.round_trip}"]
    packets = f"{text.packets} in {format_count(text.trials, 'trial')}"
    return "; ".join([*(words for words in measured if words), packets])


def _asked(link: MeasuredLink) -> str:
    there, back = link.to_standby.words, link.to_upstream.words
    return f"{there} each way" if there == back else f"{there}; back {back}"


def _round_trip(links: Sequence[MeasuredLink]) -> str:
    expected_s = links[0].asked_round_trip_ns / 1e9
    measured = [took for link in links if (took := link.round_trip_ns) is not None]
    if not measured:
        return f"{NOT_AVAILABLE}: no packet came back"
    took_s = median(measured) / 1e9
    if not expected_s:
        return format_duration(took_s)
    allowed_s = _allowed_s(links[0].to_standby) + _allowed_s(links[0].to_upstream)
    is_exact = abs(took_s - expected_s) <= allowed_s
    verdict = "" if is_exact else f" (not within {format_duration(allowed_s)}: 100 us or 2 % each way)"
    return f"{format_duration(took_s)}, of which {format_duration(expected_s)} are the delays{verdict}"


def _allowed_s(way: LinkSettings) -> float:
    """Return by how much a packet of the measurement may miss the delay of one direction."""
    sending_s = 8 * _BYTES / way.rate_bits_per_s if way.rate_bits_per_s else 0.0
    return max(_EXACT_S, _EXACT_SHARE * way.delay_ns / 1e9) + way.jitter_ns / 1e9 + sending_s


def _packets(links: Sequence[MeasuredLink]) -> str:
    counters = [one for link in links for one in (link.sent_to_standby, link.sent_to_upstream)]
    sent = sum(one.sent for one in counters)
    gone = {name: sum(getattr(one, name) for one in counters) for name in ("lost", "overflowed", "partitioned")}
    words = ", ".join(f"{count:,} {name}" for name, count in gone.items() if count)
    return f"{sent:,} packets" + (f", {words}" if words else "")


NETWORK = Section(
    id="network",
    title="Emulated network",
    note="Links between nodes that replication uses. Round trips of packets of 64 bytes were measured before each load, through "
    "the same links; what they take beyond the delays is the emulation and this machine, and is named where it is more than 100 us or 2 % "
    "each way. How late packets came, after they were due, is of all of them since the network was made.",
    blocks=table_of(
        lambda report: report.links,
        {
            "Link": lambda one: one.link,
            "Asked": lambda one: one.asked,
            "Trials": lambda one: str(one.trials),
            "Round trip": lambda one: one.round_trip,
            "Packets": lambda one: one.packets,
        },
    ),
    entries=sentences_of(lambda report: report.links, lambda one: one.link, link_sentence),
    nouns="links",
    page="storage",
)
