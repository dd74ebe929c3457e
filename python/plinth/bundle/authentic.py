"""What a run that is resumed goes by, authenticated: resume.mac says that plan and experiment are as its user wrote them.

The file holds the HMAC-SHA256 of plan.json, experiment.toml and the version of Plinth, by the run's key, which is not in
the bundle. What else is in a bundle is data: it is compared and shown, but nothing in it is executed or made.
"""

import hmac

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


def read_authentic_plan(folder: BundleFolder, manifest: Manifest, key: RunKey) -> Plan:
    """The plan of a bundle whose run has this key, read once and checked before it is parsed.

    Raises Refused where plan, experiment or the manifest's version of Plinth are not what the key vouches for.
    """
    found = folder.read_bytes(MAC) if folder.entry(MAC) else b""
    plan, experiment_toml = folder.read_bytes(_PLAN), folder.read_bytes(_EXPERIMENT)
    if not hmac.compare_digest(found.strip(), _mac(key, manifest.plinth_version, plan, experiment_toml).encode()):
        raise Refused(
            "the bundle is not as its run began it: its plan, its experiment or its version of Plinth was altered, or it "
            "is another run's",
            where=str(folder.path / (MAC if found else _PLAN)),
            hint=REPEAT_HINT.format(bundle=folder.path),
        )
    return parse_plan(folder, plan.decode())


def _mac(key: RunKey, plinth_version: str, plan: bytes, experiment_toml: bytes) -> str:
    return key.mac({"plinth": plinth_version.encode(), _PLAN: plan, _EXPERIMENT: experiment_toml})
