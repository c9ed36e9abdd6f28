"""Rows 48 to 51: how soon each process counts alone without Redis, and together again once it is back."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack

import httpx
import pytest

from accounts.limits.redis_window import RedisWindow
from tests.patience import PATIENCE_S
from tests.reliability.fixtures import Tell
from tests.reliability.limits.test_redis_faults import PROCESSES, Counted, counted, running

PAUSE_S, RESETS, RESET_EVERY_S = 3.0, 4, 5.0
ANSWERED_WITHIN_S, BACK_WITHIN_S = 2.0, 5.0
__all__ = ["counted", "running"]
pytestmark = pytest.mark.row("48–51", "no request takes 2 s, no 5xx")


async def ask_for(seconds: float, counted: Counted, key: str) -> list[float]:
    """Eight clients per server, each asking again as soon as it was answered; how long each answer took."""
    ends_at = time.monotonic() + seconds
    took_s: list[float] = []

    async def one(client: httpx.AsyncClient, url: str) -> None:
        while (started_at := time.monotonic()) < ends_at:
            answer = await client.get(f"{url}/api/limits", headers={"X-API-Key": key})
            assert answer.status_code == 200
            took_s.append(time.monotonic() - started_at)
            await asyncio.sleep(0.02)

    async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
        await asyncio.gather(*(one(client, server.url) for server in counted.servers for _ in range(8)))
    return sorted(took_s)


@pytest.mark.parametrize("how", ["paused", "killed"])
def test_without_redis_no_request_is_delayed(
    counted: Counted,  # noqa: F811 - the fixture
    running: ExitStack,  # noqa: F811
    how: str,
    tell: Tell,
) -> None:
    key = counted.make_key()
    counted.wait_for_redis()
    if how == "paused":
        with counted.redis.paused():
            took_s = asyncio.run(ask_for(PAUSE_S, counted, key))
    else:
        counted.redis.kill()
        took_s = asyncio.run(ask_for(PAUSE_S, counted, key))
        running.close()
        running.enter_context(counted.redis.running())
    back_after_s = counted.wait_for_redis()
    middle_s = took_s[len(took_s) // 2]
    tell(f"{how}: {len(took_s)} answers, median {middle_s * 1000:.0f} ms, slowest {took_s[-1] * 1000:.0f} ms")
    tell(f"counting in Redis again after {back_after_s:.2f} s")
    assert took_s[-1] < ANSWERED_WITHIN_S
    # Only the first wait for Redis; those after them are answered as if there were none.
    assert middle_s < RedisWindow.PATIENCE_S / 2
    assert back_after_s < BACK_WITHIN_S


@pytest.mark.row(
    "49",
    "reset every 5 s: 1.5 times the connections there were made anew each time; slow answers not simulated",
)
def test_reset_connections_are_reopened_without_a_storm(
    counted: Counted,  # noqa: F811 - the fixture
    tell: Tell,
) -> None:
    key = counted.make_key()
    counted.wait_for_redis()
    with counted.redis.client as client:
        # Redis may just have been away, and some connect again only after a second.
        time.sleep(RESET_EVERY_S)
        # This client's own stays.
        held = len(client.client_list()) - 1
        made_before = client.info("stats")["total_connections_received"]
        for _ in range(RESETS):
            client.execute_command("CLIENT", "KILL", "SKIPME", "yes")
            assert {counted.status(server, key) for server in counted.servers} == {200}
            time.sleep(RESET_EVERY_S)
        made = client.info("stats")["total_connections_received"] - made_before
    a_second = made / (RESETS * RESET_EVERY_S) / PROCESSES
    tell(f"{RESETS} resets, one every {RESET_EVERY_S:.0f} s: {made} connections made anew, of {held} held")
    tell(f"{a_second:.2f} a second and process")
    # Nearly all once.
    assert RESETS <= made <= 1.5 * RESETS * held
