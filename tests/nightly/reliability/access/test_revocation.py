"""What one process decides holds in all others within two seconds, nudged by Redis or not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import httpx
import pytest

from accounts.key_text import prefix_of
from accounts.limits.tiers import save_tier
from accounts.models import ApiKey
from tests.factories import make_account, make_key, make_tier
from tests.patience import wait_until
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process

HOLDS_WITHIN_S = 2.0
SEEN_WITHIN_S = 10.0
PROCESSES, REVOCATIONS = 2, 5
pytestmark = [pytest.mark.usefixtures("rows"), pytest.mark.row("15, 16", "in effect everywhere within 2 s")]


@pytest.fixture(scope="module")
def nudged(scaled: Installation) -> Iterator[list[Process]]:
    with scaled.serve(PROCESSES) as servers:
        yield servers


@pytest.fixture(scope="module")
def polling(scaled: Installation) -> Iterator[list[Process]]:
    """On the same database; nobody tells them to look."""
    with scaled.serve(PROCESSES, REDIS_PREFIX="apart") as servers:
        yield servers


def ask(server: Process, key: str) -> httpx.Response:
    """Free of charge, so that asking often changes nothing."""
    return server.ask("/api/limits", key)


def time_when(holds: Callable[[], bool]) -> float:
    wait_until(holds, SEEN_WITHIN_S)
    return time.time()


def make_known_key(installation: Installation, servers: list[Process]) -> str:
    with installation.orm():
        key = make_key(make_account())
    assert {ask(server, key).status_code for server in servers} == {200}
    return key


def seconds_to_refusal(installation: Installation, servers: list[Process]) -> float:
    """From the revocation's own time, shortly before its commit, to its refusal by every server."""
    key = make_known_key(installation, servers)
    with ThreadPoolExecutor(1) as watcher:
        refused = watcher.submit(time_when, lambda: {ask(s, key).status_code for s in servers} == {401})
        done = installation.manage("revoke_key", key)
        assert done.returncode == 0, done.stderr
        refused_at = refused.result()
    with installation.orm():
        revoked_at = ApiKey.objects.get(prefix=prefix_of(key)).revoked_at
    assert revoked_at is not None
    return refused_at - revoked_at.timestamp()


@pytest.mark.parametrize("kind", ["nudged", "polling"])
def test_a_key_revoked_by_another_process_is_refused_within_two_seconds(
    scaled: Installation, kind: str, request: pytest.FixtureRequest, tell: Tell
) -> None:
    servers = request.getfixturevalue(kind)
    took = sorted(seconds_to_refusal(scaled, servers) for _ in range(REVOCATIONS))
    tell(f"{kind}: median {median(took) * 1000:.0f} ms, slowest of {REVOCATIONS}: {took[-1] * 1000:.0f} ms")
    assert took[-1] < HOLDS_WITHIN_S


def limit_of(server: Process, key: str) -> tuple[int, int]:
    """The limit, and how much of the window is used."""
    headers = ask(server, key).headers
    limit = int(headers["X-RateLimit-Limit"])
    return limit, limit - int(headers["X-RateLimit-Remaining"])


def test_a_change_of_tier_applies_within_the_current_window(
    scaled: Installation, nudged: list[Process], tell: Tell
) -> None:
    key = make_known_key(scaled, nudged)
    for server in nudged * 5:
        server.ask("/api/symbols", key)
    with scaled.orm():
        username = ApiKey.objects.get(prefix=prefix_of(key)).account.user.username
    assert scaled.manage("issue_key", username, "--tier", "pro").returncode == 0
    changed_at = time.time()
    held_at = time_when(lambda: {limit_of(server, key) for server in nudged} == {(120, 5 * PROCESSES)})
    tell(f"{max(0, held_at - changed_at) * 1000:.0f} ms after the command ended")
    assert held_at - changed_at < HOLDS_WITHIN_S


def test_an_edited_tier_applies_within_the_current_window(
    scaled: Installation, polling: list[Process], tell: Tell
) -> None:
    with scaled.orm():
        tier = make_tier("edited", requests_per_minute=50)
        key = make_key(make_account(tier=tier))
    assert {limit_of(server, key) for server in polling} == {(50, 0)}
    statuses = [polling[0].ask("/api/symbols", key).status_code for _ in range(5)]
    with scaled.orm():
        tier.requests_per_minute = 5
        save_tier(tier, by="test")
    changed_at = time.time()
    held_at = time_when(lambda: limit_of(polling[0], key) == (5, 5))
    tell(f"{(held_at - changed_at) * 1000:.0f} ms after the commit")
    assert held_at - changed_at < HOLDS_WITHIN_S
    refused = polling[0].ask("/api/symbols", key)
    assert (statuses, refused.status_code) == ([200] * 5, 429)
