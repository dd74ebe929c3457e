"""Defaults and bounds of the load engine's configuration are declared in its model, and nowhere else."""

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from plinth.model.load_config import LedgerFiles, LoadConfig

ROOT = Path(__file__).resolve().parents[3]
ENGINE = ROOT / "crates/load/src"
LIMITS = ENGINE / "limits.rs"
_DEFAULT = re.compile(r'#\[serde\((?:.*, )?default = "([^"]+)"')
_NUMBER = re.compile(r"(?<![\w.])\d[\d_]*")


def defaults_of(text: str) -> list[str]:
    return _DEFAULT.findall(text)


def numbers_of(text: str) -> set[int]:
    return {int(number.replace("_", "")) for number in _NUMBER.findall(text)}


def sources() -> Iterator[tuple[Path, str]]:
    for path in sorted(ENGINE.rglob("*.rs")):
        if path != LIMITS and path.stem != "tests":
            yield path, path.read_text(encoding="utf-8").partition("#[cfg(test)]")[0]


def greatest(model: type[BaseModel], key: str) -> int:
    return int(model.model_json_schema()["properties"][key]["maximum"])


def test_the_engine_has_no_default_of_its_own() -> None:
    found = {name for _, text in sources() for name in defaults_of(text)}
    assert found and {name for name in found if not name.startswith("limits::")} == set()
    assert defaults_of('#[serde(default = "one")]\n#[serde(rename = "a", default = "b")]') == ["one", "b"], "a control"


def test_greatest_values_are_in_the_generated_module_only() -> None:
    declared = {
        greatest(LoadConfig, "clients"),
        greatest(LoadConfig, "stop_timeout_s"),
        greatest(LedgerFiles, "first_number"),
    }
    assert declared <= numbers_of(LIMITS.read_text(encoding="utf-8"))
    twice = {str(path.relative_to(ROOT)): both for path, text in sources() if (both := declared & numbers_of(text))}
    assert twice == {}
