"""Rows 19, 21 and 22: too much at once, too big, or nothing at all."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.nightly.reliability.clients.meters import Meter, Trial, listening, tried
from tests.patience import wait_until
from tests.reliability.clients.measures import Memory
from tests.reliability.clients.swarm import Listener
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import Flow, StreamService, streaming
from tests.serving.websocket.test_hostile_clients import HOSTILE
from tests.serving.websocket.wires import TEXT, RawClient, masked

SYMBOLS = [f"FLOOD{number}" for number in range(4)]
PATH, TICKS_A_SECOND, OTHERS, FOR_S = "/ws/market", 200, 20, 5.0
# 10 s, and what a machine three times slower than ours needs for a thousand at once.
SILENT, TIMED_OUT_WITHIN_S = 1_000, (9.5, 20.0)
ROUNDS, WARM_ROUNDS = 20, 5
TOO_BIG = [
    "a byte too many",
    "1 MiB",
    "2^63 bytes announced",
    "10,000 fragments",
    "10,000 empty fragments",
]


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation) -> Iterator[StreamService]:
    with streaming(embedded_for_module, 1, SYMBOLS) as running:
        yield running


@pytest.fixture
def port(service: StreamService) -> int:
    return service.servers[0].port


@pytest.fixture
def message(service: StreamService) -> dict[str, Any]:
    features = ["seq", "lag"]
    return {"action": "subscribe", "symbols": SYMBOLS, "api_key": service.make_key(), "features": features}


async def closed_with(port: int, sent: bytes) -> int:
    client = await RawClient.connect(port, path=PATH)
    try:
        client.writer.write(sent)
        return await client.close_code()
    finally:
        client.abort()


@pytest.mark.row("19", "each closed with code 1009; at most 2 MiB more memory")
def test_oversized_frames_are_refused_and_take_no_memory(
    service: StreamService, port: int, tell: Tell
) -> None:
    async def rounds(count: int) -> Counter[int]:
        codes = [await closed_with(port, HOSTILE[name][0]) for _ in range(count) for name in TOO_BIG]
        return Counter(codes)

    asyncio.run(rounds(WARM_ROUNDS))
    memory = Memory(service.servers[0].pid)
    codes = asyncio.run(rounds(ROUNDS))
    memory.look()
    tell(f"{codes.total()} oversized frames: closed with {dict(codes)}; memory +{memory.grown_mib:.1f} MiB")
    assert set(codes) == {1009}
    assert memory.grown_mib <= 2


async def flood(port: int, message: dict[str, Any], until: float) -> Counter[int]:
    """A thousand subscribes a second; it comes back whenever it is thrown out."""
    codes: Counter[int] = Counter()
    sent = masked(TEXT, json.dumps(message).encode())
    while time.monotonic() < until:
        client = await RawClient.connect(port, path=PATH)
        client.writer.write(sent * 100)
        codes[await client.close_code()] += 1
        client.abort()
        await asyncio.sleep(0.1)
    return codes


@pytest.mark.row(
    "21",
    "closed with code 4413; at most 5 MiB more memory; p99 of other clients up by at most "
    "10% and one push (50 ms)",
)
def test_a_flood_of_subscribes_is_disconnected_and_harms_no_other_client(
    service: StreamService, port: int, message: dict[str, Any], tell: Tell
) -> None:
    memory, codes = Memory(service.servers[0].pid), Counter[int]()
    with Flow(service, TICKS_A_SECOND), listening(port, PATH, message, OTHERS) as meter:
        trials = tried(lambda: flooded(port, message, meter, codes))
    memory.look()
    lost = sum(trial.lost for trial in trials)
    tell(
        f"{codes.total()} floods of 100 messages: closed with {dict(codes)}; memory"
        f" +{memory.grown_mib:.1f} MiB"
    )
    tell(f"p99 of {OTHERS} others before, during and after: {'; '.join(map(str, trials))}; lost: {lost}")
    assert (set(codes), lost) == ({4413}, 0)
    assert memory.grown_mib <= 5
    assert trials[-1].is_unharmed


def flooded(port: int, message: dict[str, Any], meter: Meter, codes: Counter[int]) -> Trial:
    meter.take()
    time.sleep(FOR_S)
    before = meter.take()
    codes.update(asyncio.run(flood(port, message, time.monotonic() + FOR_S)))
    during = meter.take()
    time.sleep(FOR_S)
    return Trial(before, during, meter.take())


@pytest.mark.row("22", "all closed on time; no slot left occupied")
def test_a_thousand_sockets_that_never_subscribe_are_closed(
    service: StreamService, port: int, message: dict[str, Any], tell: Tell
) -> None:
    async def run() -> list[tuple[int, float]]:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(silent(loop, port) for _ in range(SILENT)))

    ends = asyncio.run(run())
    codes = Counter(code for code, _ in ends)
    took_s = sorted(took_s for _, took_s in ends)
    on_time = sum(TIMED_OUT_WITHIN_S[0] < each_s < TIMED_OUT_WITHIN_S[1] for each_s in took_s)
    wait_until(lambda: service.open_streams(message["api_key"]) == 0, FOR_S)
    tell(
        f"closed with {dict(codes)}; {on_time} of {SILENT} closed after {took_s[0]:.1f} to"
        f" {took_s[-1]:.1f} s; slots left: 0"
    )
    assert codes == {4408: SILENT}
    assert on_time == SILENT


async def silent(loop: asyncio.AbstractEventLoop, port: int) -> tuple[int, float]:
    """The code, and after how many seconds it came."""
    _, listener = await loop.create_connection(lambda: Listener(PATH, {}), "127.0.0.1", port)
    await asyncio.wait_for(asyncio.shield(listener.opened), TIMED_OUT_WITHIN_S[1])
    opened_at = loop.time()
    code, took_s = await listener.ended, loop.time() - opened_at
    await listener.leave()
    return code, took_s
