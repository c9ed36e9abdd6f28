from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from config.management.commands.serve import Prepared, as_it_is, banner
from tests.factories import make_instrument, make_user

pytestmark = pytest.mark.django_db
HERE = "http://127.0.0.1:8000"
FRONT, TERMINAL = f"  Front page     {HERE}/", f"  Terminal       {HERE}/terminal"


@pytest.mark.parametrize(
    ("options", "addresses"),
    [
        ({"DEMO": True}, [f"  Terminal       {HERE}/"]),
        ({"DEMO": False, "PUBLIC_TERMINAL": False}, [FRONT, f"{TERMINAL}  (after login)"]),
        ({"DEMO": False, "PUBLIC_TERMINAL": True}, [FRONT, TERMINAL]),
    ],
)
def test_banner_names_what_is_at_the_address(options: dict[str, Any], addresses: list[str]) -> None:
    with override_settings(**options):
        lines = [line for line in banner("127.0.0.1", 8000, Prepared()).splitlines() if "  http://" in line]
    assert lines[: len(addresses)] == addresses
    assert lines[len(addresses)].startswith("  Documentation")


@pytest.mark.parametrize(
    ("options", "port", "prepared", "words", "is_said"),
    [
        ({"REDIS_URL": "", "DEMO": False}, 8000, Prepared(), "manage.py run_engine", False),
        ({"REDIS_URL": "redis://cache/0", "DEMO": False}, 8000, Prepared(), "manage.py run_engine", True),
        ({"DEMO": True}, 8000, Prepared(), "--port", False),
        ({"DEMO": True}, 8100, Prepared(), "demo_login --port 8100  ", True),
        ({"DEMO": False, "PRODUCTION": False}, 8000, Prepared(is_empty=True), "    DEMO=0 ", True),
        ({"DEMO": False, "PRODUCTION": True}, 8000, Prepared(is_empty=True), "    DEMO=0 ", False),
    ],
)
def test_banner_names_the_commands_for_this_service(
    options: dict[str, Any], port: int, prepared: Prepared, words: str, is_said: bool
) -> None:
    with override_settings(**options):
        assert (words in banner("127.0.0.1", port, prepared)) is is_said


def test_first_steps_are_for_who_has_taken_none() -> None:
    with override_settings(DEMO=False):
        assert "It starts empty" in banner("127.0.0.1", 8000, as_it_is())
        for make in (lambda: make_instrument("EURUSD"), lambda: make_user("ann")):
            made = make()
            assert "It starts empty" not in banner("127.0.0.1", 8000, as_it_is())
            made.delete()
