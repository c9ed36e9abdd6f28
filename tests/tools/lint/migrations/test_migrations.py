"""Migrations make what the models say, and (row 61 of the gate) those after the last release let it serve on:
it writes rows that know nothing of what was added, and whoever goes back finds what they left. RELEASE,
CHANGELOG and the version agree on what was released."""

from __future__ import annotations

import json
import re
import tomllib
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from core.version import VERSION
from tools.lint.migrations.faults import faults
from tools.lint.migrations.harmless import HARMLESS
from tools.lint.migrations.last import Release, last_release, numbers
from tools.lint.modules import ROOT


def test_migrations_only_add() -> None:
    assert list(faults(MigrationLoader(None), last_release())) == []


def test_control_those_from_before_there_was_a_release_are_seen() -> None:
    earlier = Release("0.0.1", "", (("market", "0008_source_seqs"),))
    found = {fault.split(" ", 1)[0] for fault in faults(MigrationLoader(None), earlier)}
    assert "market.0009_simulated_and_real" in found


def test_control_a_listed_migration_is_newer_than_the_release_and_would_be_refused() -> None:
    refused = {fault.split(" ", 1)[0] for fault in faults(MigrationLoader(None), last_release(), harmless=())}
    assert refused == set(HARMLESS)
    assert all(reason.endswith(".") for reason in HARMLESS.values())


@pytest.mark.django_db
def test_models_and_migrations_agree() -> None:
    output = StringIO()
    try:
        call_command("makemigrations", check=True, dry_run=True, stdout=output)
    except SystemExit:
        pytest.fail(f"`manage.py makemigrations --name …` has something to write:\n{output.getvalue()}")


@pytest.mark.django_db
def test_every_migration_is_applied_and_has_one_successor_at_most() -> None:
    executor = MigrationExecutor(connection)

    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    assert executor.loader.detect_conflicts() == {}


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
