"""Rows 12 and 13: who was away for seconds or minutes gets all that was missed, or is told so."""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

import pytest

from tests.reliability.clients.swarm import listen
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import Flow, streaming

SYMBOLS, PATH = [f"AWAY{number}" for number in range(4)], "/ws/market"
# Of each symbol less than the 1,000 frames that are kept come in two minutes.
TICKS_A_SECOND, HEARS_FOR_S = 20, 1.0
AWAY_S = (5.0, 60.0, 118.5, 121.5)
# What a slow machine lets come back between these is told or recovered, as it comes.
RECOVERED_S, TOLD_S = 119.5, 120.5


class Absence(NamedTuple):
    took_s: float
    """At most: from before the client went until it was answered."""
    is_recovered: bool
    wrong: int
    """How many numbers were missing or twice."""


async def be_away(port: int, message: dict[str, Any], seconds: float) -> Absence:
    before = await listen(port, PATH, message)
    await asyncio.sleep(HEARS_FOR_S)
    left_s = time.monotonic()
    await before.leave()
    positions = {symbol.decode(): seq for symbol, seq in before.positions.items()}
    await asyncio.sleep(seconds)
    resume = {"epoch": before.reply.result()["epoch"], "positions": positions}
    after = await listen(port, PATH, message | {"resume": resume})
    took_s = time.monotonic() - left_s
    await asyncio.sleep(HEARS_FOR_S)
    await after.leave()
    reply = after.reply.result()
    moved = sum(reply["positions"][symbol] != seq for symbol, seq in positions.items())
    # The last tick of what is not recovered has the number of its place, and is no duplicate.
    unrecovered = len(reply.get("unrecovered", []))
    return Absence(took_s, reply["recovered"], after.missed - unrecovered + moved * reply["recovered"])


@pytest.mark.row(
    "12, 13",
    "after up to 119 s: no gaps, no duplicates; after 121 s: clients are notified, never partly recovered",
)
def test_clients_resume_after_up_to_two_minutes(embedded: Installation, tell: Tell) -> None:
    with streaming(embedded, 1, SYMBOLS) as service, Flow(service, TICKS_A_SECOND):
        message = {"action": "subscribe", "symbols": SYMBOLS, "api_key": service.make_key()}
        message |= {"features": ["seq", "lag"]}
        port = service.servers[0].port

        async def run() -> list[Absence]:
            return await asyncio.gather(*(be_away(port, message, seconds) for seconds in AWAY_S))

        found = asyncio.run(run())
    told = {round(each.took_s, 1): "recovered" if each.is_recovered else "notified" for each in found}
    tell(f"after seconds away: {told}; missing or duplicated: {[each.wrong for each in found]}")
    assert [each.wrong for each in found] == [0] * len(AWAY_S)
    assert all(each.is_recovered for each in found if each.took_s < RECOVERED_S)
    assert not any(each.is_recovered for seconds, each in zip(AWAY_S, found, strict=True) if seconds > TOLD_S)
