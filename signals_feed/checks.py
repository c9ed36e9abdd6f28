"""System checks: the triggers that make signals unchangeable are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import connections

from . import guards


@register(Tags.database)
def check_guards(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Only where a database is asked for, as `migrate` and `check --database default` do. A warning, because
    an error would keep `migrate` from mending it."""
    return [message for alias in databases or () for message in check(alias)]


def check(alias: str) -> list[CheckMessage]:
    # Before the first migrate there is nothing to guard.
    if not set(guards.KEPT_WHOLE) <= set(connections[alias].introspection.table_names()):
        return []
    missing = sorted(guards.missing(alias))
    if not missing:
        return []
    return [
        Warning(
            f"The database would let published signals be changed: {', '.join(missing)} missing, disabled or "
            "changed.",
            hint="Run `manage.py migrate`: it puts them up again. Then `manage.py verify_ledger` "
            "says whether anything was changed meanwhile.",
            id="signals_feed.W001",
        )
    ]
