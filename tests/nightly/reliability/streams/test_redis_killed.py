"""Row 7 for streams: the Redis between engine and clients is killed, and comes back empty. Meanwhile they
are told that what they hear is not the newest any more."""

from __future__ import annotations

import asyncio
import math
import time
from pathlib import Path

import pytest

from tests.nightly.delays import noted_delays
from tests.patience import PATIENCE_S
from tests.reliability.clients.swarm import Listener, listen_many
from tests.reliability.conftest import Tell
from tests.reliability.services.flow import Flow
from tests.reliability.services.private_servers import PrivateRedis
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming

SYMBOLS = [f"BUS{number}" for number in range(4)]
PATH, TICKS_A_SECOND, CROWD = "/ws/market", 40, 1_000
AWAY_S, CALM_S, TOLD_WITHIN_S, FLOWS_WITHIN_S = 15.0, 1.0, 3.0, 2.0


class Outage:
    """What a crowd of clients heard of it."""

    def __init__(self, service: StreamService, redis: PrivateRedis) -> None:
        self._service, self._redis, self._key = service, redis, service.make_key()
        self.statuses: set[int] = set()
        self.flows_after_s = self.told_after_s = self.late_s = 0.0
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
        self.late_s = max(late_ms for listener in crowd for late_ms in listener.late_ms) / 1000
        killed_at_ms = time.time_ns() // 1_000_000
        self._redis.kill()
        with noted_delays() as delays:
            await asyncio.to_thread(self._ask, AWAY_S)
            self.late_s += delays.longest_s
        told_at_ms = [listener.notices.get("stale", math.inf) for listener in crowd]
        self.told_after_s = (max(told_at_ms) - killed_at_ms) / 1000
        with self._redis.running():
            with noted_delays() as delays:
                self.flows_after_s = await until_all_hear(crowd) - delays.total_s
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
    async with asyncio.timeout(PATIENCE_S):
        for listener, count in zip(crowd, before, strict=True):
            while listener.frames == count:  # noqa: ASYNC110 - frames are counted, not announced
                await asyncio.sleep(0.02)
    return time.monotonic() - began_at


@pytest.mark.row(
    "7",
    "nobody disconnected, nothing lost without notice, clients notified within 3 s, "
    "prices flowing again within 2 s, no 5xx from REST",
)
def test_redis_killed_and_returning_empty_disconnects_nobody(
    embedded: Installation, tmp_path: Path, rows: None, tell: Tell
) -> None:
    redis = PrivateRedis(tmp_path)
    embedded.redis_url = redis.url
    with redis.running(), streaming(embedded, 1, SYMBOLS) as service:
        outage = Outage(service, redis)
        with Flow(service, TICKS_A_SECOND):
            asyncio.run(outage.run())
    tell(
        f"{CROWD} sockets: disconnected: {outage.dropped}, lost without notice: {outage.missed},"
        f" notified of a gap: {outage.announced}"
    )
    tell(
        f"Redis down for {AWAY_S:.0f} s: every client was notified of stale prices after"
        f" {outage.told_after_s:.1f} s"
    )
    tell(f"ticks before the outage arrived at most {outage.late_s * 1000:.0f} ms late")
    tell(
        f"prices flowed again {outage.flows_after_s:.1f} s after its start; REST answered"
        f" {sorted(outage.statuses)}"
    )
    # The engine gives Redis again what it had taken, so there is no gap to be told of.
    assert (outage.dropped, outage.missed, outage.announced) == (0, 0, 0)
    assert outage.statuses == {200}
    # A machine on which ticks are late is late with notices too, and so are clients that stood still.
    assert outage.told_after_s <= TOLD_WITHIN_S + outage.late_s
    assert outage.flows_after_s <= FLOWS_WITHIN_S
