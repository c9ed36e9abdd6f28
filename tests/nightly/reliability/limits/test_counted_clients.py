"""Row 76: whichever process is asked, it counts the open streams of all, while they come and go."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import pytest

from tests.patience import wait_until
from tests.reliability.clients.swarm import listen, listen_many
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming

PATH, SYMBOL, KEPT, CHURNED, CHURN_S = "/ws/market", "COUNTED", 40, 20, 5.0


def counted(service: StreamService, key: str) -> list[int]:
    """As each process says it."""
    return [server.ask("/api/session", key).json()["clients_connected"] for server in service.servers]


@pytest.mark.row("76", "the count is exact once traffic is quiet")
@pytest.mark.usefixtures("rows")
def test_clients_of_all_processes_are_counted_exactly_after_a_churn(
    scaled: Installation, tell: Tell, seed: int
) -> None:
    chosen = random.Random(seed)  # noqa: S311

    async def churn(ports: list[int], message: dict[str, Any]) -> None:
        kept = await listen_many(ports, PATH, message, KEPT)
        until = asyncio.get_running_loop().time() + CHURN_S
        while asyncio.get_running_loop().time() < until:
            passing = [await listen(chosen.choice(ports), PATH, message) for _ in range(CHURNED)]
            chosen.shuffle(passing)
            await asyncio.gather(*(one.leave() for one in passing))
        # One in four of those that were there all the time.
        for one in kept[: KEPT // 4]:
            await one.leave()
        began_at = time.monotonic()
        await asyncio.to_thread(wait_until, lambda: counted(service, asking) == [left, left])
        tell(f"{left} of {KEPT} stayed: both processes say so after {time.monotonic() - began_at:.1f} s")
        await asyncio.gather(*(one.leave() for one in kept[KEPT // 4 :]))

    with streaming(scaled, 2, [SYMBOL]) as service:
        asking, key = service.make_key(requests_per_minute=100_000), service.make_key()
        left = KEPT - KEPT // 4
        message: dict[str, Any] = {"action": "subscribe", "symbols": [SYMBOL], "api_key": key}
        asyncio.run(churn([server.port for server in service.servers], message))
        wait_until(lambda: counted(service, asking) == [0, 0])
