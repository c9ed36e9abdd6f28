"""Rows 12 and 13: who was away for seconds or minutes gets all that was missed, or is told so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from pytest_django import DjangoDbBlocker

from tests.reliability.conftest import Tell
from tests.reliability.resuming.test_away import SYMBOLS, Traveller
from tests.reliability.services.flow import Flow
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming

# Of each symbol less than the 1,000 frames that are kept come in two minutes.
TICKS_A_SECOND, HEARS_FOR_S = 20, 1.0
AWAY_S = (5.0, 60.0, 118.5, 121.5)
# What a slow machine lets come back between these is told or recovered, as it comes.
RECOVERED_S, TOLD_S = 119.5, 120.5


pytestmark = pytest.mark.usefixtures("rows")


class Absence(NamedTuple):
    took_s: float
    """At most: from before the client went until it was answered."""
    is_recovered: bool
    wrong: int
    """How many numbers were missing or twice."""


@pytest.fixture(scope="module")
def service(
    prompt: None, embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker
) -> Iterator[StreamService]:
    with django_db_blocker.unblock(), streaming(embedded_for_module, 1, SYMBOLS) as running:
        yield running


async def be_away(traveller: Traveller, seconds: float) -> Absence:
    before = await traveller.come()
    await asyncio.sleep(HEARS_FOR_S)
    left_s = time.monotonic()
    await before.leave()
    positions = {symbol.decode(): seq for symbol, seq in before.positions.items()}
    await asyncio.sleep(seconds)
    epoch = before.reply.result()["epoch"]
    return await come_back(traveller, left_s, epoch, positions)


async def come_back(traveller: Traveller, left_s: float, epoch: str, positions: dict[str, int]) -> Absence:
    after = await traveller.come(resume={"epoch": epoch, "positions": positions})
    took_s = time.monotonic() - left_s
    await asyncio.sleep(HEARS_FOR_S)
    await after.leave()
    reply = after.reply.result()
    moved = sum(reply["positions"][symbol] != seq for symbol, seq in positions.items())
    # The last tick of what is not recovered has the number of its place, and is no duplicate.
    unrecovered = len(reply.get("unrecovered", []))
    wrong = after.missed - unrecovered + moved * reply["recovered"]
    return Absence(took_s, reply["recovered"], wrong)


@pytest.mark.row(
    "12, 13",
    "after up to 119 s: no gaps, no duplicates; after 121 s: clients are notified, never partly recovered",
)
def test_clients_resume_after_up_to_two_minutes(service: StreamService, tell: Tell) -> None:
    traveller = Traveller(service)

    async def run() -> list[Absence]:
        return await asyncio.gather(*(be_away(traveller, seconds) for seconds in AWAY_S))

    with Flow(service, TICKS_A_SECOND):
        found = asyncio.run(run())
    told = {round(each.took_s, 1): "recovered" if each.is_recovered else "notified" for each in found}
    tell(f"after seconds away: {told}; missing or duplicated: {[each.wrong for each in found]}")
    assert [each.wrong for each in found] == [0] * len(AWAY_S)
    assert all(each.is_recovered for each in found if each.took_s < RECOVERED_S)
    assert not any(each.is_recovered for seconds, each in zip(AWAY_S, found, strict=True) if seconds > TOLD_S)
