from __future__ import annotations

import pytest
from django.test import override_settings

from config.startup import Prepared, as_it_is, banner
from tests.factories import make_instrument, make_user


@pytest.mark.parametrize(("redis_url", "is_told"), [("", False), ("redis://127.0.0.1:6379/0", True)])
def test_banner_names_the_engine_that_runs_beside_it(redis_url: str, is_told: bool) -> None:
    with override_settings(REDIS_URL=redis_url, DEMO=False):
        assert ("manage.py run_engine" in banner("127.0.0.1", 8000, Prepared())) is is_told


@pytest.mark.parametrize(("port", "ends"), [(8000, "demo_login"), (8100, "demo_login --port 8100")])
def test_line_for_another_login_leads_to_the_same_service(port: int, ends: str) -> None:
    with override_settings(DEMO=True):
        lines = banner("127.0.0.1", port, Prepared()).splitlines()
    (line,) = [line for line in lines if "prints another" in line]
    assert line.partition("    prints")[0].endswith(ends)


HERE = "http://127.0.0.1:8000"
FIRST = {
    "the demo": ({"DEMO": True}, [f"  Terminal       {HERE}/"]),
    "for accounts": (
        {"DEMO": False, "PUBLIC_TERMINAL": False},
        [f"  Front page     {HERE}/", f"  Terminal       {HERE}/terminal  (after login)"],
    ),
    "public": (
        {"DEMO": False, "PUBLIC_TERMINAL": True},
        [f"  Front page     {HERE}/", f"  Terminal       {HERE}/terminal"],
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize("kind", FIRST)
def test_banner_names_what_is_at_the_address(kind: str) -> None:
    options, expected = FIRST[kind]
    with override_settings(**options):
        lines = [line for line in banner("127.0.0.1", 8000, Prepared()).splitlines() if "  http://" in line]
    assert lines[: len(expected)] == expected
    assert lines[len(expected)].startswith("  Documentation")


@pytest.mark.parametrize(("production", "told"), [(False, "    DEMO=0 "), (True, "    ")])
def test_first_steps_are_told_what_the_service_was(production: bool, told: str) -> None:
    with override_settings(DEMO=False, PRODUCTION=production):
        lines = banner("127.0.0.1", 8000, Prepared(is_empty=True)).splitlines()
    (load,) = [line for line in lines if "load_instruments" in line]
    assert load.startswith(f"{told}.venv/bin/python") or load.startswith(f"{told}tickwire-server")


@pytest.mark.django_db
def test_first_steps_are_for_who_has_taken_none() -> None:
    with override_settings(DEMO=False):
        assert "It starts empty" in banner("127.0.0.1", 8000, as_it_is())
        for make in (lambda: make_instrument("EURUSD"), lambda: make_user("ann")):
            made = make()
            assert "It starts empty" not in banner("127.0.0.1", 8000, as_it_is())
            made.delete()
