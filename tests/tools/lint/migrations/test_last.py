"""RELEASE, CHANGELOG and the version agree on what was released."""

from __future__ import annotations

import json
import re
import tomllib

from core.program.version import VERSION
from tools.lint.migrations.last import last_release, numbers
from tools.lint.modules import ROOT

CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
DATED = re.compile(r"^## (\S+) \((\d{4}-\d{2}-\d{2})\)$", re.MULTILINE)


def test_release_is_the_newest_that_is_dated_but_for_the_one_that_is_being_made() -> None:
    dated = [version for version, _ in DATED.findall(CHANGELOG)]
    assert last_release().version == next(version for version in dated if version != VERSION)


def test_changelog_begins_with_what_is_not_released_yet_or_with_this_version() -> None:
    first = re.findall(r"^## (\S+)", CHANGELOG, re.MULTILINE)[0]
    assert first == ("Unreleased" if ".dev" in VERSION else VERSION)


def test_code_after_a_release_goes_by_a_later_name() -> None:
    assert numbers(VERSION.removesuffix(".dev0")) > numbers(last_release().version)


def test_clients_go_by_the_version_of_the_service() -> None:
    """A package of the same name is not installed again, whatever is in it."""
    python = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]["version"]
    typescript, locked = (
        json.loads((ROOT / "clients/typescript" / name).read_text())["version"]
        for name in ("package.json", "package-lock.json")
    )
    assert python == VERSION
    assert typescript == locked == VERSION.replace(".dev", "-dev.")
    assert f'"tickwire-python/{python}"' in (ROOT / "clients/python/tickwire/calls.py").read_text()
    assert f'"tickwire-typescript/{typescript}"' in (ROOT / "clients/typescript/src/runtime.ts").read_text()
