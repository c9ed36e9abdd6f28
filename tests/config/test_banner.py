from __future__ import annotations

import pytest
from django.test import override_settings

from config.startup import banner


@pytest.mark.parametrize(("redis_url", "is_told"), [("", False), ("redis://127.0.0.1:6379/0", True)])
def test_banner_names_the_engine_that_runs_beside_it(redis_url: str, is_told: bool) -> None:
    with override_settings(REDIS_URL=redis_url, DEMO=False):
        assert ("manage.py run_engine" in banner("127.0.0.1", 8000)) is is_told


@pytest.mark.parametrize(("port", "ends"), [(8000, "demo_login"), (8100, "demo_login --port 8100")])
def test_line_for_another_login_leads_to_the_same_service(port: int, ends: str) -> None:
    with override_settings(DEMO=True):
        lines = banner("127.0.0.1", port).splitlines()
    (line,) = [line for line in lines if "prints another" in line]
    assert line.partition("    prints")[0].endswith(ends)


def test_banner_names_the_terminal_first() -> None:
    lines = [line for line in banner("127.0.0.1", 8000).splitlines() if "  http://" in line]

    assert lines[0] == "  Terminal       http://127.0.0.1:8000/"
