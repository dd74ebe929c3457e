"""A run with all that is made of it."""

from typing import NamedTuple

from plinth.analyse import analyse
from plinth.model.analysis import Analysis
from plinth.model.contents import BundleContents
from plinth.model.report import Report
from plinth.report import build_report


class Reported(NamedTuple):
    """A run, its analysis and its report."""

    contents: BundleContents
    analysis: Analysis
    report: Report

    def of(self, analysis: Analysis) -> Report:
        """The report of this run if its analysis were `analysis`."""
        return build_report(self.contents, analysis)


def reported(contents: BundleContents) -> Reported:
    analysis = analyse(contents)
    return Reported(contents, analysis, build_report(contents, analysis))
