"""The machine's clock is set while a source pushes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from itertools import count

import pytest

from core import clock
from core.steady_clock import ClockChange
from market.engine import runner as engine_runner
from market.engine.engine import Engine
from market.prices.quotes import Prices
from market.prices.records import Tick
from market.push import intake
from market.push.keys import PushSource
from tests.core.test_steady_clock import Machine
from tests.factories import make_instrument
from tests.market.running import make_runner

pytestmark = pytest.mark.django_db
STEP_MS, EVERY_MS, ON_ITS_WAY_MS = 10_000, 500, 40
SOURCE = PushSource(1, "right", frozenset(), "")


class RightSource:
    """Pushes to the engine of a machine whose clock is set; its own clock is right all along."""

    def __init__(self, machine: Machine, *, sends_times: bool) -> None:
        self._machine, self._sends_times = machine, sends_times
        self._engine = Engine(Prices("bid"))
        self._runner = make_runner(self._engine)
        self._runner.writer.lease.is_held = True
        self._runner.writer.begin()
        self._bids = count(1.0, 0.00001)
        self.refused: Counter[str] = Counter()

    async def push_for(self, ms: int) -> None:
        for _ in range(ms // EVERY_MS):
            (at_ms,) = self._machine.go(EVERY_MS, EVERY_MS)
            self._engine.keep_time(at_ms, 0)
            bid = next(self._bids)
            tick = {"symbol": "EURUSD", "bid": bid, "ask": bid + 0.0002}
            tick |= {"time": self._machine.true_ms - ON_ITS_WAY_MS} if self._sends_times else {}
            verdict = await intake.take(SOURCE, intake.read(json.dumps(tick).encode()), self._push)
            self.refused.update(tick.code for tick in verdict.rejected)

    async def _push(self, origin: str, ticks: list[Tick], sent_ms: int, key: str) -> list[str | None]:
        return self._runner.push(origin, ticks, sent_ms, key)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(engine_runner, "clock", machine.clock)
    for module in (engine_runner, clock):
        monkeypatch.setattr(module, "now_ms", machine.clock.now_ms)
    make_instrument("EURUSD", source="push")
    return machine


@pytest.mark.parametrize(
    ("sends_times", "step_ms", "change"),
    [
        (True, STEP_MS, ClockChange.KEPT),
        (True, -STEP_MS, ClockChange.KEPT),
        # A tick without a time confirms no clock.
        (False, STEP_MS, ClockChange.FOLLOWED),
    ],
)
def test_source_that_sends_right_times_is_believed_and_never_refused(
    machine: Machine, sends_times: bool, step_ms: int, change: ClockChange
) -> None:
    source = RightSource(machine, sends_times=sends_times)

    async def run() -> None:
        await source.push_for(30_000)
        machine.set(step_ms)
        await source.push_for(180_000)

    asyncio.run(run())

    assert source.refused == {}
    assert machine.told == [(change, step_ms)]
