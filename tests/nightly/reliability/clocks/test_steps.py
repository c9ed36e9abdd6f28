"""Row 56: the clock of the machine jumps under a running service. Limits go by what has passed."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest

from tests.factories import make_account, make_key
from tests.reliability.clocks.clock import Clock
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process

LIMIT, HOUR_S = 60, 3600
pytestmark = pytest.mark.usefixtures("rows")


def now_of(server: Process, key: str) -> float:
    """What the service takes the time for."""
    return datetime.fromisoformat(server.ask("/api/session", key).json()["server_time"]).timestamp()


def admitted(server: Process, key: str) -> int:
    """Of a few more than the limit. One after the other, and again where the service was busy: who is sent
    away for that has not been counted."""
    found = Counter[int]()
    while found[200] + found[429] < LIMIT + 20:
        found[server.ask("/api/symbols", key).status_code] += 1
    assert set(found) <= {200, 429, 503}
    return found[200]


@pytest.mark.row("56", "exactly the limit is admitted; nobody is locked out beyond the window")
@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])
def test_the_rate_window_is_unaffected_by_the_clock(
    embedded: Installation, tmp_path: Path, tell: Tell, step_s: int
) -> None:
    clock = Clock(tmp_path)
    with embedded.orm():
        used, fresh, watcher = (make_key(make_account()) for _ in range(3))
    with embedded.serve(1, **clock.environment) as servers:
        before = admitted(servers[0], used)
        clock.step(step_s)
        off_s = now_of(servers[0], watcher) - time.time()
        again, newcomer = admitted(servers[0], used), admitted(servers[0], fresh)
    tell(f"clock {off_s:+.0f} s: admitted before {before}, in the same minute {again}, a newcomer {newcomer}")
    # The clock of the service did jump.
    assert abs(off_s - step_s) < HOUR_S / 2
    assert (before, newcomer) == (LIMIT, LIMIT)
    assert again == 0


@pytest.mark.row("56", "tells the time that the service is told")
def test_control_an_hour_that_passed_frees_the_window(embedded: Installation, tmp_path: Path) -> None:
    """With the monotonic clock faked too, so that the steps above are known to reach the process."""
    clock = Clock(tmp_path)
    del clock.environment["FAKETIME_DONT_FAKE_MONOTONIC"]
    with embedded.orm():
        key = make_key(make_account())
    with embedded.serve(1, **clock.environment) as servers:
        assert admitted(servers[0], key) == LIMIT
        clock.step(HOUR_S)
        assert admitted(servers[0], key) == LIMIT
