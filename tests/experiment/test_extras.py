"""Packages of extras: what pyproject.toml lists is what the error names."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from plinth.model.errors import MissingCapability
from plinth.system import extras

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_every_package_of_an_extra_is_named_with_it():
    declared = {
        re.split(r"[<>=\[]", package)[0]: extra
        for extra, packages in PROJECT["optional-dependencies"].items()
        if extra != "dev"
        for package in packages
    }
    assert declared == extras._EXTRAS


@pytest.mark.parametrize("package", extras._EXTRAS)
def test_a_missing_package_is_named_with_its_extra_in_one_line(monkeypatch, package):
    extras.require_package(package, "this")
    monkeypatch.setitem(sys.modules, extras._MODULES.get(package, package), None)
    with pytest.raises(MissingCapability, match=f"this needs the Python package {package}, which is not") as caught:
        extras.require_package(package, "this")
    assert caught.value.hint == f"pip install 'pgplinth[{extras._EXTRAS[package]}]'"
