"""What one process decides holds in all others in the end, nudged by Redis or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from accounts.key_text import prefix_of
from accounts.keys.issuing import revoke_key
from accounts.limits.tiers import save_tier
from accounts.models import ApiKey
from tests.factories import make_account, make_key, make_tier
from tests.patience import wait_until
from tests.reliability.services.processes import Installation, Process

pytestmark = pytest.mark.row("15, 16", "in effect everywhere")
ASKED = 5


@pytest.fixture(scope="module")
def servers(scaled: Installation) -> Iterator[list[Process]]:
    """On one database. The second hears nothing over Redis, and counts alone."""
    with scaled.web_process() as nudged, scaled.web_process(REDIS_PREFIX="apart") as polling:
        yield [nudged, polling]


def statuses(servers: list[Process], key: str) -> set[int]:
    """Free of charge, so that asking often changes nothing."""
    return {server.ask("/api/limits", key).status_code for server in servers}


def test_a_key_revoked_by_another_process_is_refused_everywhere(
    scaled: Installation, servers: list[Process]
) -> None:
    with scaled.orm():
        other = make_key(make_account())
    revoke_everywhere(scaled, servers)
    assert statuses(servers, other) == {200}


def revoke_everywhere(scaled: Installation, servers: list[Process]) -> float:
    """How many seconds after its commit it held."""
    with scaled.orm():
        key = make_key(make_account())
    assert statuses(servers, key) == {200}
    with scaled.orm():
        revoke_key(ApiKey.objects.get(prefix=prefix_of(key)), by="test")
    return wait_until(lambda: statuses(servers, key) == {401})


def test_an_edited_tier_applies_within_the_current_window(
    scaled: Installation, servers: list[Process]
) -> None:
    edit_tier(scaled, servers)


def edit_tier(scaled: Installation, servers: list[Process]) -> float:
    """How many seconds after its commit it held."""
    with scaled.orm():
        tier = make_tier("edited", requests_per_minute=50)
        key = make_key(make_account(tier=tier))
    for server in servers * ASKED:
        assert server.ask("/api/symbols", key).status_code == 200
    with scaled.orm():
        tier.requests_per_minute = ASKED
        save_tier(tier, by="test")

    def is_at_its_end(server: Process) -> bool:
        headers = server.ask("/api/limits", key).headers
        return (headers["X-RateLimit-Limit"], headers["X-RateLimit-Remaining"]) == (str(ASKED), "0")

    took_s = wait_until(lambda: all(map(is_at_its_end, servers)))
    assert {server.ask("/api/symbols", key).status_code for server in servers} == {429}
    return took_s
