"""Each command of docs/operate/upgrade.md is run by a test, which is named here."""

from __future__ import annotations

import re

from tests.reliability.rows import exists
from tests.reliability.services.processes import ROOT

UPGRADE = "tests/reliability/upgrade/test_upgrade.py::test_upgrade_and_the_way_back_lose_nothing"
RUN_BY = {
    "cd NEW && python manage.py migrate": UPGRADE,
    "kill -TERM PID": UPGRADE,
    "python manage.py serve --port 8001": UPGRADE,
    "kill -HUP PID": "tests/reliability/restarts/test_rolling_traffic.py"
    "::test_both_workers_of_one_service_are_replaced",
    "python manage.py run_engine": UPGRADE,
    'curl -s -H "Authorization: Bearer $METRICS_TOKEN" http://127.0.0.1:8001/metrics'
    " | grep tickwire_version": UPGRADE,
}


def test_each_command_of_the_page_is_run_by_a_test() -> None:
    page = (ROOT / "docs/operate/upgrade.md").read_text()
    assert set(re.findall(r"^       (\S.*)$", page, re.MULTILINE)) == set(RUN_BY)
    assert all(exists(test) for test in RUN_BY.values())
