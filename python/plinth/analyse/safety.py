"""What becomes of an acknowledged commit when the power goes: judged from the storage's facts and the server's settings.

A judgement from facts, not a test: a device that lies about its flushes is not found here.
"""

from collections.abc import Mapping

from plinth.model.facts import ServerFacts, StorageFacts
from plinth.model.plan import DATA_ROLE, WAL_ROLE, Variant
from plinth.model.safety import GRADES, Safety, SafetyGrade

Finding = tuple[SafetyGrade, str]
_OFF = {"off", "false", "no", "0"}

_FLUSHES_OFF: dict[str, str] = {
    "nobarrier": "the file system sends no flushes to the device",
    "barrier=0": "the file system sends no flushes to the device",
}
"""Mount options under which fsync returns before the device's cache is written."""
_WRITEBACK = "data=writeback"
_TRUSTED: tuple[Finding, ...] = (
    ("keeps", "every commit is flushed before it is acknowledged, to storage that is not volatile"),
    ("keeps", "the device is trusted to keep what it says it has flushed"),
)
"""What remains to be said where nothing speaks against a variant."""


def judge(variant: Variant, storages: Mapping[str, StorageFacts | None], server: ServerFacts | None) -> Safety:
    """The worst of what storages and settings allow.

    `storages` by what the server has on them ("data", "WAL", ...), none of an external server. Facts that were never
    read are None.
    """
    findings = [] if storages else [_unknown("Plinth did not start this server and cannot see it")]
    for role, storage in storages.items():
        findings += _of_storage(role, storage)
    findings += [*_of_settings(variant, storages, server), *_TRUSTED]
    worst, _ = max(findings, key=lambda finding: GRADES.index(finding[0]))
    return Safety(
        grade=worst, reasons=tuple(reason for grade, reason in findings if (grade == "keeps") == (worst == "keeps"))
    )


def _unknown(why: str) -> Finding:
    return "unknown", f"the storage cannot be judged: {why}"


def _of_storage(role: str, storage: StorageFacts | None) -> list[Finding]:
    if storage is None:
        return [
            _unknown(
                "its facts were never read" if role == DATA_ROLE else f"the facts of that of {role} were never read"
            )
        ]
    name = storage.name if role == DATA_ROLE else f"{storage.name}, where the {role} is,"
    findings: list[Finding] = []
    if storage.volatile:
        why = storage.volatile_reason or f"{storage.filesystem} loses everything at a power cut"
        findings.append(("does not keep", f"{name} is volatile: {why}"))
    if storage.flushes_withheld is not None:
        findings.append(("does not keep", storage.flushes_withheld))
    for option in storage.mount_options:
        if option in _FLUSHES_OFF:
            findings.append(("does not keep", f"{name} is mounted with {option}: {_FLUSHES_OFF[option]}"))
        if option == _WRITEBACK:  # as PostgreSQL's manual has it, 28.3: Write-Ahead Logging
            findings.append(
                (
                    "keeps",
                    f"{name} is mounted with {option}: after a crash a file that was not flushed may hold old blocks, and "
                    "PostgreSQL flushes what it relies on",
                )
            )
        if option == "volatile" and storage.filesystem == "overlay":
            findings.append(("does not keep", f"{name} is a volatile overlay, which leaves out every sync"))
    return findings


def _of_settings(
    variant: Variant, storages: Mapping[str, StorageFacts | None], server: ServerFacts | None
) -> list[Finding]:
    findings: list[Finding] = []
    if server is None:
        findings.append(("unknown", "the settings in force were never read back from the server"))
    off = _settings_off(variant, server)
    if "fsync" in off:
        findings.append(("does not keep", "fsync = off: nothing is flushed, and a power cut can corrupt everything"))
    of_pages = [storage for role, storage in storages.items() if role != WAL_ROLE]
    if "full_page_writes" in off and of_pages and all(storage and storage.filesystem == "zfs" for storage in of_pages):
        findings.append(("keeps", "full_page_writes = off, on zfs, which never overwrites a page in place"))
    elif "full_page_writes" in off:
        findings.append(
            ("does not keep", "full_page_writes = off: a page torn by a power cut cannot be repaired from the WAL")
        )
    if "synchronous_commit" in off:
        findings.append(
            (
                "may lose recent commits",
                "synchronous_commit = off: a crash loses the commits of up to three times wal_writer_delay",
            )
        )
    return findings


def _settings_off(variant: Variant, server: ServerFacts | None) -> set[str]:
    """Names of switched-off settings, as read back; or as requested where they were not read. All of them are on by
    default."""
    if server is None:
        return {name for name, value in variant.settings.items() if str(value).lower() in _OFF}
    return {setting.name for setting in server.settings if setting.value.lower() in _OFF}
