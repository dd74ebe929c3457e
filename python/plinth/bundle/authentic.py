"""Authenticates plan and experiment of a run that is resumed: resume.mac shows that its user wrote them.

The file holds the HMAC-SHA256 of plan.json, experiment.toml and the version of Plinth, by the run's key, which is not in
the bundle. While the plan is replaced by one with more trials it holds two, a line each, so that after a kill at any instant
the plan that is there is authenticated. What else is in a bundle is data: it is compared and shown, but nothing in it is
executed or made.
"""

import hmac
from typing import NamedTuple

from plinth.bundle.files import BundleFolder
from plinth.bundle.reader import parse_plan
from plinth.model.errors import Refused
from plinth.model.manifest import Manifest
from plinth.model.plan import Plan
from plinth.system.run_key import RunKey

MAC = "resume.mac"
REPEAT_HINT = "to repeat its experiment here: `plinth run {bundle}` shows what it would run, and asks"
_PLAN, _EXPERIMENT = "plan.json", "experiment.toml"


def write_mac(folder: BundleFolder, key: RunKey, plinth_version: str, plan: str, experiment_toml: str) -> None:
    """Write resume.mac for a bundle whose plan and experiment have these texts."""
    folder.write_durably(MAC, _mac(key, plinth_version, plan.encode(), experiment_toml.encode()) + "\n")


class Authentic(NamedTuple):
    """Plan and experiment of a bundle as they were when they were authenticated."""

    plan: Plan
    experiment_toml: bytes
    mac: str


def read_authentic(folder: BundleFolder, manifest: Manifest, key: RunKey) -> Authentic:
    """Return plan and experiment of a bundle whose run has this key, checked before the plan is parsed.

    Raises Refused where plan, experiment or the manifest's version of Plinth are not what the key vouches for.
    """
    found = folder.read_bytes(MAC) if folder.entry(MAC) else b""
    plan, experiment_toml = folder.read_bytes(_PLAN), folder.read_bytes(_EXPERIMENT)
    mac = _mac(key, manifest.plinth_version, plan, experiment_toml)
    if not any(hmac.compare_digest(line, mac.encode()) for line in found.split()):
        raise Refused(
            "the bundle is not as its run began it: its plan, its experiment or its version of Plinth was altered, or it "
            "is another run's",
            where=str(folder.path / (MAC if found else _PLAN)),
            hint=REPEAT_HINT.format(bundle=folder.path),
        )
    return Authentic(parse_plan(folder, plan.decode()), experiment_toml, mac)


def replace_plan(folder: BundleFolder, manifest: Manifest, key: RunKey, before: Authentic, plan: Plan) -> None:
    """Write `plan` in place of the one that was read as `before`; killed at any instant, one of both is there and authentic.

    What is in the bundle by now is not read again, so that nothing is vouched for that was not checked.
    """
    text = plan.model_dump_json(indent=1)
    mac = _mac(key, manifest.plinth_version, text.encode(), before.experiment_toml)
    folder.write_durably(MAC, f"{before.mac}\n{mac}\n")
    folder.write_durably(_PLAN, text)
    folder.write_durably(MAC, f"{mac}\n")


def _mac(key: RunKey, plinth_version: str, plan: bytes, experiment_toml: bytes) -> str:
    return key.mac({"plinth": plinth_version.encode(), _PLAN: plan, _EXPERIMENT: experiment_toml})
