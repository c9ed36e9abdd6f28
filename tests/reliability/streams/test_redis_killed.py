"""Row 7 for streams: the Redis between engine and clients is killed, and comes back empty or is replaced by
its replica. Nobody is disconnected, and nothing is lost without notice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.patience import until, wait_until
from tests.programs.redis_group import RedisGroup
from tests.reliability.clients.swarm import Listener, listen_many
from tests.reliability.conftest import Tell
from tests.reliability.services.private_servers import PrivateRedis
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import Flow, StreamService, streaming

SYMBOLS = [f"BUS{number}" for number in range(4)]
PATH, TICKS_A_SECOND, CROWD = "/ws/market", 40, 40
Fault = Callable[[list[Listener]], None]
# They are told that prices are stale as soon as in production.
pytestmark = pytest.mark.usefixtures("prompt")


async def hear_on(crowd: list[Listener]) -> None:
    before = [listener.frames for listener in crowd]
    await until(lambda: all(each.frames > count for each, count in zip(crowd, before, strict=True)))


def check(service: StreamService, fault: Fault, tell: Tell, count: int = CROWD) -> float:
    """How long after the fault it took until all heard again."""
    message = {"action": "subscribe", "symbols": SYMBOLS, "api_key": service.make_key()}
    message |= {"features": ["seq", "lag"]}

    async def run(flow: Flow) -> tuple[int, int, int, float]:
        crowd = await listen_many([service.servers[0].port], PATH, message, count)
        await hear_on(crowd)
        await asyncio.to_thread(fault, crowd)
        over_at = time.monotonic()
        await hear_on(crowd)
        took_s = time.monotonic() - over_at
        await asyncio.to_thread(flow.stop)
        await until(lambda: len({tuple(sorted(each.positions.items())) for each in crowd}) == 1)
        dropped = sum(listener.ended.done() for listener in crowd)
        missed, gaps = (
            sum(each) for each in zip(*((one.missed, len(one.gaps)) for one in crowd), strict=True)
        )
        await asyncio.gather(*(listener.leave() for listener in crowd))
        return dropped, missed, gaps, took_s

    with Flow(service, TICKS_A_SECOND) as flow:
        dropped, missed, gaps, took_s = asyncio.run(run(flow))
    tell(
        f"{count} sockets: disconnected: {dropped}, lost without notice: {missed}, notified of a gap: {gaps}"
    )
    # The engine gives Redis again what it had taken, so there is no gap to be told of.
    assert (dropped, missed, gaps) == (0, 0, 0)
    return took_s


@contextmanager
def over(installation: Installation, redis_url: str) -> Iterator[StreamService]:
    installation.redis_url = redis_url
    with streaming(installation, 1, SYMBOLS) as service:
        yield service


@pytest.mark.row("7", "nobody disconnected, nothing lost without notice, clients notified, REST answers")
def test_redis_killed_and_returning_empty_disconnects_nobody(
    embedded: Installation, tmp_path: Path, tell: Tell
) -> None:
    redis = PrivateRedis(tmp_path)
    with redis.running() as url, over(embedded, url) as service:
        key = service.make_key()

        def kill(crowd: list[Listener]) -> None:
            redis.kill()
            wait_until(lambda: all("stale" in listener.notices for listener in crowd))
            wait_until(lambda: service.servers[0].ask("/api/symbols", key).status_code == 200)
            back.enter_context(redis.running())

        with ExitStack() as back:
            check(service, kill, tell)


@pytest.mark.row("7, Sentinel", "nobody disconnected, nothing lost without notice")
def test_a_redis_replica_takes_over(embedded: Installation, tmp_path: Path, tell: Tell) -> None:
    group = RedisGroup(tmp_path / "redis")
    with group.running(), over(embedded, group.url) as service:

        def fail_over(_: list[Listener]) -> None:
            before = group.master
            before.kill()
            group.wait_for_another(before)

        check(service, fail_over, tell)
