"""Forecast every emulated drive of a bundle from a run on every other, and compare with what was measured there.

  forecast_error.py BUNDLE...

A line for each pair, then how many were within their 90 % interval, and the median error. The figures of docs/guides/forecast.md.
"""

import argparse
import sys
from pathlib import Path
from statistics import median

from plinth.analyse.forecast import forecast, is_as_its_profile
from plinth.analyse.trials import judge_trials
from plinth.bundle import read_bundle
from plinth.model.contents import BundleContents
from plinth.model.errors import UsageError
from plinth.model.level import Level
from plinth.model.plan import DATA_ROLE, Variant
from plinth.model.storage import EmulatedStorage
from plinth.storage.devices.disk_daemon import disk_profiles


def main() -> int:
    """Print the errors of all pairs of the bundles of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", nargs="+", metavar="BUNDLE", type=Path)
    within: list[bool] = []
    errors: list[float] = []
    for bundle in parser.parse_args().bundles:
        for is_within, error in _pairs(read_bundle(bundle)):
            within.append(is_within)
            errors.append(abs(error))
    if errors:
        print(f"{sum(within)} of {len(within)} within their 90 % interval; median error {median(errors):.1%}")
    return 0


def _pairs(contents: BundleContents) -> list[tuple[bool, float]]:
    profiles = {profile.name: profile for profile in disk_profiles()}
    every = [
        one
        for one in judge_trials(contents).values()
        if not one.variant.is_aa_twin and one.counted and _profile(contents, one.variant)
    ]
    found: list[tuple[bool, float]] = []
    for here in every:
        others = {
            profile: there
            for there in every
            if _like(here.variant) == _like(there.variant)
            and (profile := _profile(contents, there.variant)) != _profile(contents, here.variant)
        }
        try:
            made = forecast(contents, profiles, tuple(others), here.variant.label)
        except UsageError as error:
            print(f"{here.variant.label}: {error.message}")
            continue
        print(here.variant.label, {name: round(share, 3) for name, share in made.parts.items()})
        for one in made.drives:
            measured = others[one.profile].tps(1)
            if measured is None or one.tps is None or one.tps.interval is None:
                print(f"  {one.profile:20} n/a: {one.unavailable}")
                continue
            error = one.tps.value / measured.value - 1
            is_within = one.tps.interval.low <= measured.value <= one.tps.interval.high
            mark = "" if is_within else "  outside"
            print(
                f"  {one.profile:20} {one.tps.value:8.0f} measured {measured.value:8.0f} {error:+7.1%} {one.limit}{mark}"
            )
            found.append((is_within, error))
    return found


def _like(variant: Variant) -> dict[str, Level]:
    """Return what two variants must have in common."""
    return {factor: level for factor, level in variant.levels.items() if factor not in ("storage", "server.storage")}


def _profile(contents: BundleContents, variant: Variant) -> str:
    """Return the profile of the drive that a variant is on; "" for another storage, or other physics."""
    storage = contents.plan.storages[contents.cluster_of(variant).primary.roles[DATA_ROLE]]
    return storage.profile if isinstance(storage, EmulatedStorage) and is_as_its_profile(storage) else ""


if __name__ == "__main__":
    sys.exit(main())
