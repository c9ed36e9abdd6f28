"""Row 60: what `migrate` sets for itself ends with it, because `serve` goes on with its connection."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection

from tests.reliability.services.processes import Installation

BOUNDS = ("lock_timeout", "idle_in_transaction_session_timeout")
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("60", "no time limit outlives its migration"),
]


def bounds() -> list[str]:
    with connection.cursor() as cursor:
        shown = []
        for name in BOUNDS:
            cursor.execute(f"SHOW {name}")
            shown.append(cursor.fetchone()[0])
        return shown


def test_time_limits_of_a_migration_end_with_it(scaled: Installation) -> None:
    with scaled.orm():
        before = bounds()
        call_command("migrate", verbosity=0)
        assert bounds() == before
