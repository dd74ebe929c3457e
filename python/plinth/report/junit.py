"""Writes JUnit XML for CI services: a test case for each ratio and each objective.

Elements and attributes are those of the Jenkins JUnit plugin's schema (testsuites, testsuite, testcase, failure, skipped), which
GitLab, GitHub actions and Azure read too.
"""

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple
from xml.etree import ElementTree

from plinth.common.shown import shown

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow even as references (section 2.2)."""


Outcome = Literal["passed", "failed", "skipped"]


class Case(NamedTuple):
    """A test case: passed, failed, or skipped if the result is inconclusive."""

    name: str
    outcome: Outcome
    sentence: str


class Suite(NamedTuple):
    """The test cases of one run."""

    name: str
    cases: Sequence[Case]


def outcome_of(finding: str | None, failing: Collection[str]) -> Outcome:
    """Return the outcome of a test case: passed without a finding, failed for one of `failing`, else skipped."""
    if finding is None:
        return "passed"
    return "failed" if finding in failing else "skipped"


def render_junit(suites: Sequence[Suite]) -> str:
    """Return an XML document. Names are escaped."""
    root = ElementTree.Element("testsuites", _counts([case for suite in suites for case in suite.cases]))
    for suite in suites:
        element = ElementTree.SubElement(root, "testsuite", {"name": _text(suite.name), **_counts(suite.cases)})
        for case in suite.cases:
            _add(element, suite, case)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add(element: ElementTree.Element, suite: Suite, case: Case) -> None:
    test = ElementTree.SubElement(
        element, "testcase", {"classname": _text(suite.name), "name": _text(case.name), "time": "0"}
    )
    if case.outcome == "passed":
        ElementTree.SubElement(test, "system-out").text = _text(case.sentence)
    else:
        tag = "failure" if case.outcome == "failed" else "skipped"
        ElementTree.SubElement(test, tag, {"message": _text(case.sentence)})


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    failed = sum(case.outcome == "failed" for case in cases)
    skipped = sum(case.outcome == "skipped" for case in cases)
    return {"tests": str(len(cases)), "failures": str(failed), "errors": "0", "skipped": str(skipped)}


def _text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", shown(text))
