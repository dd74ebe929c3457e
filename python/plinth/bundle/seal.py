"""The seal: SHA-256 sums of everything measured, in the format of sha256sum(1)."""

import hashlib
from pathlib import Path

from plinth.bundle.files import write_durably
from plinth.model.errors import RunError

SEAL = "SHA256SUMS"
_UNSEALED = {"derived"}  # rebuilt at will


def seal_bundle(path: Path) -> None:
    """Write SHA256SUMS of every file but the derived ones; `sha256sum -c SHA256SUMS` checks it too."""
    write_durably(path / SEAL, "".join(f"{_sum(path / name)}  {name}\n" for name in _sealed_files(path)))


def unseal_bundle(path: Path) -> None:
    """Take the seal off, because the run goes on."""
    (path / SEAL).unlink(missing_ok=True)


def verify_bundle(path: Path) -> int:
    """Recompute the sums; returns how many files were checked. Raises RunError that names what differs."""
    if not (path / SEAL).is_file():
        raise RunError(
            "the bundle is not sealed: its run did not end", where=str(path), hint="finish it with `plinth resume`"
        )
    sums = {}
    for line in (path / SEAL).read_text().splitlines():
        digest, _, name = line.partition("  ")
        sums[name] = digest
    present = set(_sealed_files(path))
    findings = [f"missing: {name}" for name in sorted(sums.keys() - present)]
    findings += [f"not in the seal: {name}" for name in sorted(present - sums.keys())]
    findings += [f"changed: {name}" for name in sorted(present & sums.keys()) if _sum(path / name) != sums[name]]
    if findings:
        raise RunError(
            f"the bundle was changed after its run: {len(findings)} files", where=str(path), details=findings
        )
    return len(sums)


def _sealed_files(path: Path) -> list[str]:
    return sorted(
        str(file.relative_to(path))
        for file in path.rglob("*")
        if file.is_file()
        and file.relative_to(path).parts[0] not in _UNSEALED
        and file.name not in (SEAL, ".plinth.lock")
    )


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
