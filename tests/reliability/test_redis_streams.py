"""Row 7 for streams: the Redis between engine and clients is killed, and comes back empty."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.faults import PrivateRedis
from tests.reliability.flow import Flow
from tests.reliability.processes import Installation
from tests.reliability.stream_services import StreamService, streaming
from tests.reliability.swarm import Listener, listen_many

SYMBOLS = [f"BUS{number}" for number in range(4)]
PATH, TICKS_A_SECOND, CROWD = "/ws/market", 40, 1_000
AWAY_S, CALM_S, FLOWS_WITHIN_S = 10.0, 1.0, 20.0


class Outage:
    """What a crowd of clients heard of it."""

    def __init__(self, service: StreamService, redis: PrivateRedis) -> None:
        self._service, self._redis, self._key = service, redis, service.make_key()
        self.statuses: set[int] = set()
        self.flows_after_s = 0.0
        self.dropped = self.missed = self.announced = 0

    async def run(self) -> None:
        message = {
            "action": "subscribe",
            "symbols": SYMBOLS,
            "api_key": self._key,
            "features": ["seq", "lag"],
        }
        crowd = await listen_many([self._service.servers[0].port], PATH, message, CROWD)
        await asyncio.sleep(CALM_S)
        self._redis.kill()
        await asyncio.to_thread(self._ask, AWAY_S)
        with self._redis.running():
            self.flows_after_s = await until_all_hear(crowd)
            await asyncio.sleep(CALM_S)
            self._count(crowd)
            await asyncio.gather(*(listener.leave() for listener in crowd))

    def _ask(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            self.statuses.add(self._service.servers[0].ask("/api/symbols", self._key).status_code)
            time.sleep(0.1)

    def _count(self, crowd: list[Listener]) -> None:
        self.dropped = sum(listener.ended.done() for listener in crowd)
        self.missed = sum(listener.missed for listener in crowd)
        self.announced = sum(len(listener.gaps) == 1 for listener in crowd)


async def until_all_hear(crowd: list[Listener]) -> float:
    """After how many seconds each has heard something new."""
    began_at, before = time.monotonic(), [listener.frames for listener in crowd]
    async with asyncio.timeout(FLOWS_WITHIN_S):
        for listener, count in zip(crowd, before, strict=True):
            while listener.frames == count:  # noqa: ASYNC110 - frames are counted, not announced
                await asyncio.sleep(0.02)
    return time.monotonic() - began_at


@pytest.mark.row("7", "dropped 0, silent loss 0, flows again within 2 s, REST 5xx 0")
def test_redis_that_is_killed_and_comes_back_empty_drops_nobody(
    embedded: Installation, tmp_path: Path, rows: None, tell: Tell
) -> None:
    redis = PrivateRedis(tmp_path)
    embedded.redis_url = redis.url
    with redis.running(), streaming(embedded, 1, SYMBOLS) as service:
        outage = Outage(service, redis)
        with Flow(service, TICKS_A_SECOND):
            asyncio.run(outage.run())
    tell(f"{CROWD} sockets: dropped {outage.dropped}, silent loss {outage.missed}, told {outage.announced}")
    tell(f"flows again {outage.flows_after_s:.1f} s after its start, REST {sorted(outage.statuses)}")
    # The engine gives Redis again what it had taken, so there is no gap to be told of.
    assert (outage.dropped, outage.missed, outage.announced) == (0, 0, 0)
    assert outage.statuses == {200}
