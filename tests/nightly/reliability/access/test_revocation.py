"""What one process decides holds in all others within two seconds, nudged by Redis or not."""

from __future__ import annotations

import pytest

from tests.reliability.access.test_revocation import edit_tier, revoke_everywhere, servers
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process

HOLDS_WITHIN_S, REVOCATIONS = 2.0, 5
__all__ = ["servers"]
pytestmark = [pytest.mark.usefixtures("rows"), pytest.mark.row("15, 16", "in effect everywhere within 2 s")]


@pytest.mark.parametrize("number", [0, 1], ids=["nudged", "polling"])
def test_a_decision_holds_within_two_seconds(
    scaled: Installation,
    servers: list[Process],  # noqa: F811 - the fixture
    number: int,
    tell: Tell,
) -> None:
    one = [servers[number]]
    took_s = max(revoke_everywhere(scaled, one) for _ in range(REVOCATIONS))
    edited_s = edit_tier(scaled, one)
    tell(f"slowest of {REVOCATIONS} revocations {took_s * 1000:.0f} ms, a tier {edited_s * 1000:.0f} ms")
    assert max(took_s, edited_s) < HOLDS_WITHIN_S
