"""What is said of the run itself: its state at the beginning, the machine, warnings, gaps, and how to run it again."""

from rich.text import Text

from plinth.model.doctor import Remedy
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.report import Report
from plinth.report.sections.section import Block, Bullets, Code, Section, Table


def _doctor(report: Report) -> list[Block]:
    """Return warnings and problems that the doctor found before the run, with their remedies."""
    rows = [
        (finding.severity, finding.about, finding.saw, _remedy(finding.remedy))
        for examination in (report.doctor.examinations if report.doctor else ())
        for finding in examination.at_least("warning")
    ]
    return [Table(("Severity", "About", "Found", "Remedy"), rows)]


def _remedy(remedy: Remedy | None) -> str:
    return NOT_AVAILABLE if remedy is None else "; ".join(filter(None, (*remedy.commands, remedy.advice)))


def _reproduction(report: Report) -> list[Block]:
    how = report.reproduction
    versions = ", ".join(f"{version.name} {version.version}" for version in how.versions)
    return [
        Code("sh", "\n".join(how.commands)),
        f"{versions}; seed {how.seed}.",
        Code("toml", how.experiment_toml.strip()),
    ]


PREPARATIONS = Section(
    id="preparations",
    title="State at the beginning of the trials",
    blocks=lambda report: [Bullets(report.analysis.preparations)],
    entries=lambda report: [[Text(sentence, style="dim")] for sentence in report.analysis.preparations],
    nouns="sentences",
)
DOCTOR = Section(id="doctor", title="Machine before the run", blocks=_doctor)
WARNINGS = Section(id="warnings", title="Warnings", blocks=lambda report: [Bullets(report.analysis.warnings)])
GAPS = Section(
    id="gaps",
    title="Not available",
    blocks=lambda report: [Bullets([f"{gap.where}: {gap.what}: n/a: {gap.reason}" for gap in report.gaps])],
)
REPRODUCTION = Section(id="reproduction", title="Run it again", blocks=_reproduction)
