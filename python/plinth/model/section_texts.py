"""Titles and explanations of a report's sections."""

from plinth.model.base import Frozen


class SectionText(Frozen):
    """The title of a section, and how to read it."""

    title: str
    note: str


class SectionTexts(Frozen):
    """Of the sections that more than one form of the report has."""

    published: SectionText
    objectives: SectionText
    groups: SectionText
    pareto: SectionText
    sweep: SectionText
    effects: SectionText
    durability: SectionText
    new_orders: SectionText
    transactions: SectionText
    bottlenecks: SectionText
    server_work: SectionText
    process_io: SectionText
    ceilings: SectionText
    io: SectionText
    loaded: SectionText
    standbys: SectionText
    network: SectionText
    commits: SectionText
    outages: SectionText
    flashbacks: SectionText
    machines: SectionText
    endurance: SectionText
    wear: SectionText
