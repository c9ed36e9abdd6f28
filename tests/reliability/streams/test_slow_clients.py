"""Rows 9 and 10: clients that do not read are ended, and the others hear everything. That it is done with
4430 the contract shows; what it costs is measured at night."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from tests.patience import PATIENCE_S, until
from tests.reliability.clients.deaf import served_by, stop_reading
from tests.reliability.clients.swarm import Listener, listen_many
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming
from tests.serving.websocket.wires import TEXT, masked

PATH, SYMBOL, HEALTHY, DEAF, AT_ONCE = "/ws/market", "SLOW", 10, 4, 500
# A byte at a time, of a message that never ends.
SAID = masked(TEXT, b"x" * 2_000)


def have_heard(listeners: Sequence[Listener], count: int) -> bool:
    return all(listener.has_heard(SYMBOL, count) for listener in listeners)


@pytest.mark.usefixtures("rows")
@pytest.mark.row("9, 10", "disconnected in the end, also those that send; nothing lost to others")
def test_clients_that_never_read_are_disconnected_and_the_others_hear_all(
    embedded: Installation, tell: Tell
) -> None:
    async def run(service: StreamService, message: dict[str, Any]) -> tuple[int, int]:
        port = service.servers[0].port
        healthy = await listen_many([port], PATH, message, HEALTHY)
        deaf = [await stop_reading(port, PATH, message) for _ in range(DEAF)]
        sent = turns = 0
        async with asyncio.timeout(PATIENCE_S):
            while {one.port for one in deaf} & await asyncio.to_thread(served_by, port):
                for one in deaf[: DEAF // 2]:
                    one.say(SAID[turns : turns + 1])
                sent, turns = sent + len(await asyncio.to_thread(service.tick, SYMBOL, AT_ONCE)), turns + 1
                # Nobody who reads is behind.
                await until(partial(have_heard, healthy, sent))
        for one in deaf:
            one.close()
        wrong = sum(listener.missed + listener.ended.done() for listener in healthy)
        for listener in healthy:
            await listener.leave()
        return sent, wrong

    with streaming(embedded, 1, [SYMBOL]) as service:
        message = {"action": "subscribe", "symbols": [SYMBOL], "api_key": service.make_key()}
        sent, wrong = asyncio.run(run(service, message | {"features": ["seq", "lag"]}))
    tell(f"{DEAF} clients ended after {sent:,} ticks; lost to {HEALTHY} others: {wrong}")
    assert wrong == 0
