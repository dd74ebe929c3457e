"""From a bundle to the account of what it wrote."""

import math
from pathlib import Path

from pydantic import ValidationError

from plinth.analyse.endurance import endurance
from plinth.bundle import read_bundle
from plinth.model.endurance import DriveSpec, Endurance, Rating
from plinth.model.errors import UsageError


def endurance_of_bundle(
    path: Path,
    tps: float | None = None,
    tbw_bytes: int | None = None,
    pe_cycles: int | None = None,
    capacity_bytes: int | None = None,
    waf: float | None = None,
) -> Endurance:
    """Return the account of the bundle at `path`, for a drive as its experiment states it, unless one is given here.

    Raises UsageError when it is no bundle, or when a rating makes no sense.
    """
    if tps is not None and not 0 < tps < math.inf:
        raise UsageError(f"--tps {tps:g}: a rate is a number above 0")
    given = {"tbw": tbw_bytes, "pe_cycles": pe_cycles, "capacity": capacity_bytes, "waf": waf}
    rating = _rating({name: value for name, value in given.items() if value is not None})
    return endurance(read_bundle(path), tps, rating)


def _rating(given: dict[str, float]) -> Rating | None:
    if not given:
        return None
    try:
        return DriveSpec.model_validate(given, by_alias=True, by_name=False).rating()
    except ValidationError as error:
        problems = "; ".join(
            f"{''.join(f'{place}: ' for place in problem['loc'])}{problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors()
        )
        raise UsageError(
            f"a drive's rating: {problems}", hint="`plinth endurance --help` has an example of each"
        ) from error
