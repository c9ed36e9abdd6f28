"""A migration made for a test, of an app whose models `Thing` and `Other` the last release knows."""

from __future__ import annotations

import sys
from collections.abc import Container, Sequence
from types import ModuleType
from typing import Any

from django.db import migrations, models
from django.db.migrations import Migration
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Field

from tools.lint.migrations.faults import faults_of
from tools.lint.migrations.last import Release
from tools.lint.migrations.operations.rules import Schema

RELEASE = Release("1.4.0", "")
LISTED = ("news.0002_next",)
SHORT = models.CharField(max_length=10, null=True)  # noqa: DJ001
UNIQUE = models.UniqueConstraint(fields=["old"], name="one_old")
CHECK = models.CheckConstraint(condition=models.Q(old__gt=""), name="some_old")


def noted(
    *operations: Operation,
    contracts: object = None,
    harmless: Container[str] = (),
    atomic: bool = True,
    fields: Sequence[tuple[str, Field[Any, Any]]] = (),
) -> list[str]:
    """What is wrong with a migration that follows the release."""
    state = ProjectState()
    key = ("id", models.BigAutoField(primary_key=True))
    options = {"constraints": [UNIQUE, CHECK], "indexes": [models.Index(fields=["old"], name="by_old")]}
    for made in (
        migrations.CreateModel("thing", [key, ("old", SHORT), *fields], options),
        migrations.CreateModel("other", [key]),
    ):
        made.state_forwards("news", state)
    module = ModuleType("made_migration")
    if contracts is not None:
        module.contracts = contracts  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    kind = type(
        "Migration", (Migration,), {"operations": operations, "__module__": module.__name__, "atomic": atomic}
    )
    schema = Schema("news", state, set())
    return list(faults_of(kind("0002_next", "news"), schema, RELEASE, harmless))


def noted_of_change(was: Field[Any, Any], field: Field[Any, Any], **given: Any) -> list[str]:
    return noted(migrations.AlterField("thing", "it", field), fields=[("it", was)], **given)
