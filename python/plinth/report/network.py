"""The links of the emulated network in words: what was asked of each, and what was measured before and during the loads."""

from collections.abc import Sequence
from statistics import median

from plinth.model.contents import BundleContents
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.network import MeasuredLink
from plinth.model.report import LinkText
from plinth.model.units import format_count, format_duration


def link_texts(contents: BundleContents) -> tuple[LinkText, ...]:
    """Of every link that replication used, once for each way in which it was asked to be, in the order of the trials."""
    alike: dict[tuple[str, str], list[MeasuredLink]] = {}
    for one in contents.trials:
        for link in one.trial.network.links if one.trial.network is not None else ():
            alike.setdefault((f"{link.upstream} to {link.standby}", _asked(link)), []).append(link)
    ordered = sorted(alike.items(), key=lambda item: (item[0][0], item[1][0].asked_round_trip_ns))
    return tuple(
        LinkText(link=name, asked=asked, trials=len(links), round_trip=_round_trip(links), packets=_packets(links))
        for (name, asked), links in ordered
    )


def link_sentence(text: LinkText) -> str:
    """What the terminal says of one."""
    return f"{text.asked}; round trip {text.round_trip}; {text.packets} in {format_count(text.trials, 'trial')}"


def _asked(link: MeasuredLink) -> str:
    there, back = link.to_standby.words, link.to_upstream.words
    return f"{there} each way" if there == back else f"{there}; back {back}"


def _round_trip(links: Sequence[MeasuredLink]) -> str:
    expected_s = links[0].asked_round_trip_ns / 1e9
    measured = [took for link in links if (took := link.round_trip_ns) is not None]
    if not measured:
        return f"{NOT_AVAILABLE}: no packet came back"
    delays = f", of which {format_duration(expected_s)} are the delays" if expected_s else ""
    return f"{format_duration(median(measured) / 1e9)}{delays}"


def _packets(links: Sequence[MeasuredLink]) -> str:
    counters = [one for link in links for one in (link.sent_to_standby, link.sent_to_upstream)]
    sent = sum(one.sent for one in counters)
    gone = {name: sum(getattr(one, name) for one in counters) for name in ("lost", "overflowed", "partitioned")}
    words = ", ".join(f"{count:,} {name}" for name, count in gone.items() if count)
    return f"{sent:,} packets" + (f", {words}" if words else "")
