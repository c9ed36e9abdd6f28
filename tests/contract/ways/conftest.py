"""One service with three doors for a file, and a visitor at each of them for a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import time_machine

from tests.contract.conftest import forget_redis
from tests.contract.streams.daphne_server import DaphneServer
from tests.factories import NOON, make_calendar, make_instrument, put_candles, put_quote

from .doors import Door, ordinary_door, short_door
from .visitors import Visitor

NOON_MS = round(NOON.timestamp() * 1000)
MINUTE_MS = 60_000
Doors = tuple[Door, Door, Door]


@pytest.fixture(scope="module")
def server(db: None) -> Iterator[DaphneServer]:
    forget_redis()
    with time_machine.travel(NOON, tick=False), DaphneServer() as running:
        make_instrument("EURUSD")
        make_instrument("QUIET")
        make_instrument("GONE", calendar=make_calendar("never"), active=False)
        put_candles("EURUSD", "1m", [NOON_MS - number * MINUTE_MS for number in (3, 2, 1)])
        put_candles("EURUSD", "1h", [NOON_MS - 60 * MINUTE_MS])
        put_quote("EURUSD", at_ms=NOON_MS)
        yield running


@pytest.fixture(scope="module")
def doors(server: DaphneServer) -> Iterator[Doors]:
    with short_door(server) as short, ordinary_door(server) as ordinary:
        yield short, ordinary, Door(server.port)


@pytest.fixture
def visitors(doors: Doors) -> Iterator[list[Visitor]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Visitor(door)) for door in doors]
