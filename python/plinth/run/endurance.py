"""From a bundle to the account of what it wrote."""

from pathlib import Path

from plinth.analyse.endurance import endurance, rated
from plinth.bundle import read_bundle
from plinth.model.endurance import Endurance
from plinth.model.errors import UsageError


def endurance_of_bundle(
    path: Path,
    tps: float | None = None,
    tbw_bytes: int | None = None,
    pe_cycles: int | None = None,
    capacity_bytes: int | None = None,
    waf: float = 1.0,
) -> Endurance:
    """The account of the bundle at `path`. Raises UsageError when it is no bundle, or when a rating makes no sense."""
    if any(value is not None and value <= 0 for value in (tps, tbw_bytes, pe_cycles, capacity_bytes)) or waf < 1:
        raise UsageError("rates and sizes are above 0, and a write amplification factor is 1 or more")
    try:
        rating = rated(tbw_bytes, pe_cycles, capacity_bytes, waf)
    except ValueError as error:
        raise UsageError(str(error), hint="`plinth endurance --help` has an example of each") from error
    return endurance(read_bundle(path), tps, rating)
