"""What one process decides holds in all others in the end, nudged by Redis or not."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from accounts.key_text import prefix_of
from accounts.limits.tiers import save_tier
from accounts.models import ApiKey
from tests.factories import make_account, make_key, make_tier
from tests.patience import wait_until
from tests.reliability.services.processes import Installation, Process

pytestmark = [pytest.mark.usefixtures("rows"), pytest.mark.row("15, 16", "in effect everywhere")]
ASKED = 5


@pytest.fixture(scope="module")
def servers(scaled: Installation) -> Iterator[list[Process]]:
    """On one database. The second hears nothing over Redis, and counts alone."""
    with scaled.web_process() as nudged, scaled.web_process(REDIS_PREFIX="apart") as polling:
        yield [nudged, polling]


def ask(server: Process, key: str) -> httpx.Response:
    """Free of charge, so that asking often changes nothing."""
    return server.ask("/api/limits", key)


def make_known_key(installation: Installation, servers: list[Process], tier: str = "free") -> str:
    with installation.orm():
        key = make_key(make_account(tier=tier))
    assert {ask(server, key).status_code for server in servers} == {200}
    return key


def test_a_key_revoked_by_another_process_is_refused_everywhere(
    scaled: Installation, servers: list[Process]
) -> None:
    key, other = (make_known_key(scaled, servers) for _ in range(2))
    done = scaled.manage("revoke_key", key)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: {ask(server, key).status_code for server in servers} == {401})
    assert {ask(server, other).status_code for server in servers} == {200}


def limits(servers: list[Process], key: str) -> set[tuple[int, int]]:
    """The limit, and how much of the window is left, as each process says it."""
    told = [ask(server, key).headers for server in servers]
    return {(int(each["X-RateLimit-Limit"]), int(each["X-RateLimit-Remaining"])) for each in told}


def use(servers: list[Process], key: str) -> None:
    for server in servers * ASKED:
        assert server.ask("/api/symbols", key).status_code == 200


def test_a_change_of_tier_applies_within_the_current_window(
    scaled: Installation, servers: list[Process]
) -> None:
    key = make_known_key(scaled, servers)
    use(servers, key)
    with scaled.orm():
        username = ApiKey.objects.get(prefix=prefix_of(key)).account.user.username
    assert scaled.manage("issue_key", username, "--tier", "pro").returncode == 0
    wait_until(lambda: limits(servers, key) == {(120, 120 - ASKED)})


def test_an_edited_tier_applies_within_the_current_window(
    scaled: Installation, servers: list[Process]
) -> None:
    with scaled.orm():
        tier = make_tier("edited", requests_per_minute=50)
    key = make_known_key(scaled, servers, "edited")
    use(servers, key)
    with scaled.orm():
        tier.requests_per_minute = ASKED
        save_tier(tier, by="test")
    wait_until(lambda: limits(servers, key) == {(ASKED, 0)})
    assert {server.ask("/api/symbols", key).status_code for server in servers} == {429}
