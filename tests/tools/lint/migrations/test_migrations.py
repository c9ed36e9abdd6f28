"""Migrations make what the models say, and (row 61 of the gate) those after the last release let it serve
on: it writes rows that know nothing of what was added, and whoever goes back finds what they left."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from tools.lint.migrations.faults import faults
from tools.lint.migrations.harmless import HARMLESS
from tools.lint.migrations.last import Release, last_release


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
