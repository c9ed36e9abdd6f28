"""Row 8 for keys: without its database the service trusts known ones, and afterwards hears what it missed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from accounts.key_text import prefix_of
from accounts.keys.issuing import revoke_key
from accounts.models import ApiKey
from tests.factories import make_account, make_key
from tests.patience import wait_until
from tests.reliability.fixtures import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation, Process

RECOVERED_WITHIN_S = 5.0
HOLDS_WITHIN_S = 2.0
OUTAGE_S = 2.0
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("8", "503, never 500; recovery within 5 s"),
]


@pytest.fixture
def database(tmp_path: Path) -> PrivatePostgres:
    return PrivatePostgres(tmp_path)


@pytest.fixture
def running(database: PrivatePostgres) -> Iterator[ExitStack]:
    """Close it to stop the database, enter `database.running()` again to start it."""
    with ExitStack() as stack:
        stack.enter_context(database.running())
        yield stack


@pytest.fixture
def installation(database: PrivatePostgres, running: ExitStack, tmp_path: Path) -> Installation:
    return Installation(tmp_path, database.url)


def make_keys(installation: Installation, count: int) -> list[str]:
    with installation.orm():
        return [make_key(make_account()) for _ in range(count)]


def revoke(installation: Installation, key: str) -> None:
    with installation.orm():
        assert revoke_key(ApiKey.objects.get(prefix=prefix_of(key)), by="test")


def statuses_for(seconds: float, server: Process, key: str) -> Counter[int]:
    ends_at = time.monotonic() + seconds
    seen: Counter[int] = Counter()
    while time.monotonic() < ends_at:
        seen[server.ask("/api/symbols", key).status_code] += 1
        time.sleep(0.05)
    return seen


def seconds_until_status(server: Process, key: str, wanted: int, within_s: float) -> float:
    return wait_until(lambda: server.ask("/api/limits", key).status_code == wanted, within_s)


def test_a_revocation_after_an_outage_takes_effect(
    database: PrivatePostgres, running: ExitStack, installation: Installation, tell: Tell
) -> None:
    staying, leaving = make_keys(installation, 2)
    with installation.serve(1) as (server,):
        for key in (staying, leaving):
            assert server.ask("/api/limits", key).status_code == 200
        running.close()
        meanwhile = statuses_for(OUTAGE_S, server, staying)
        running.enter_context(database.running())
        back_after = seconds_until_status(server, staying, 200, RECOVERED_WITHIN_S)
        revoke(installation, leaving)
        heard_after = seconds_until_status(server, leaving, 401, HOLDS_WITHIN_S)
        wait_until(
            lambda: server.ask("/readyz").json()["checks"]["control_events"] == "ok", RECOVERED_WITHIN_S
        )
    tell(f"answers during {OUTAGE_S} s without the database: {dict(meanwhile)}")
    tell(f"serving again after {back_after:.2f} s; a revocation took effect after {heard_after:.2f} s")
    # What needs no database goes on with a key that is known; test_without_postgresql.py has the rest.
    assert set(meanwhile) == {200}


def test_a_revocation_takes_effect_while_connections_break(
    database: PrivatePostgres, installation: Installation, tell: Tell
) -> None:
    took = []
    with installation.serve(1) as (server,):
        for key in make_keys(installation, 6):
            seconds_until_status(server, key, 200, RECOVERED_WITHIN_S)
            database.break_connections()
            revoke(installation, key)
            took.append(seconds_until_status(server, key, 401, HOLDS_WITHIN_S))
            database.break_connections()
    tell(f"slowest of {len(took)}: {max(took) * 1000:.0f} ms")
