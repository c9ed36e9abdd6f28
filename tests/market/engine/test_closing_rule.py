"""When a minute is closed: an engine and a reader of what it says, against the rule in other words."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from market.engine.engine import Engine
from market.prices.candles import TIMEFRAMES
from market.prices.history import EncodedBars
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS

pytestmark = pytest.mark.django_db
GRACE_MS = 2_000


@pytest.fixture(autouse=True)
def _instrument() -> None:
    make_instrument("EURUSD")


class Step(NamedTuple):
    """Time goes by; then a tick comes that is so old, or somebody looks at the clock."""

    gap_ms: int
    age_ms: int | None
    price: float


gaps = st.integers(0, 900) | st.integers(0, 5_000) | st.integers(40_000, 59_000)
ages = st.none() | st.integers(0, 2_500) | st.integers(-4_000, 70_000)
steps = st.lists(st.builds(Step, gaps, ages, st.integers(1, 99).map(lambda n: n / 100)), max_size=60)


class Rule:
    """The ruling, word by word, of one instrument whose source is never away: when the first tick of a later
    minute is taken, or so long after its end, whichever is first."""

    def __init__(self) -> None:
        self.taken: list[Tick] = []
        self.clock_closed_ms = 0
        """What began before is closed by the clock."""

    def look(self, at_ms: int) -> None:
        self.clock_closed_ms = (at_ms - GRACE_MS) // MINUTE_MS * MINUTE_MS

    def is_closed(self, minute: int) -> bool:
        by_clock = (minute + 1) * MINUTE_MS <= self.clock_closed_ms
        return by_clock or any(tick.time_ms // MINUTE_MS > minute for tick in self.taken)

    def reason(self, tick: Tick, at_ms: int) -> str | None:
        if tick in self.taken[-1:]:
            return "duplicate"
        if tick.time_ms > at_ms + 5_000:
            return "future"
        if self.is_closed(tick.time_ms // MINUTE_MS):
            return "too_late"
        is_older = any(tick.time_ms < known.time_ms for known in self.taken)
        return "older_than_last" if is_older else None

    def candle(self, minute: int) -> list[float]:
        """Open, high, low, close and volume; flat at the last close without a tick."""
        prices = [tick.bid for tick in self.taken if tick.time_ms // MINUTE_MS == minute]
        if prices:
            return [prices[0], max(prices), min(prices), prices[-1], len(prices)]
        return [[tick.bid for tick in self.taken if tick.time_ms // MINUTE_MS < minute][-1]] * 4 + [0]

    def closed(self, now_minute: int) -> dict[int, list[float]]:
        first = self.taken[0].time_ms // MINUTE_MS
        minutes = range(first, now_minute + 2)
        return {minute: self.candle(minute) for minute in minutes if self.is_closed(minute)}


class Both:
    """An engine, and a process that knows only what it was told."""

    def __init__(self) -> None:
        self.engine, self.told = Engine(Prices("bid"), grace_ms=GRACE_MS), Prices("bid")
        self.facts = catalogue.get("EURUSD")

    def publish(self) -> None:
        records, self.engine.records = self.engine.records, []
        for record in records:
            self.told.apply(msgspec.convert(msgspec.to_builtins(record), type(record)), self.facts)

    def bars(self, timeframe: str, *, closed_only: bool) -> EncodedBars:
        answers = [
            prices.history(self.facts).bars(timeframe, 500, closed_only=closed_only)
            for prices in (self.engine.prices, self.told)
        ]
        assert answers[0] == answers[1]
        return answers[0]

    def closed(self, timeframe: str = "1m") -> dict[int, list[float]]:
        rows = msgspec.json.decode(b"[%s]" % self.bars(timeframe, closed_only=True).ohlcv)
        minutes = [round(datetime.fromisoformat(row.pop("time")).timestamp()) // 60 for row in rows]
        return {minute: list(row.values()) for minute, row in zip(minutes, rows, strict=True)}


@settings(max_examples=60)
@given(steps)
@example([Step(59_000, 0, 0.5), Step(1_500, 600, 0.2), Step(1_600, 2_300, 0.1)])
@example([Step(59_000, 0, 0.5), Step(1_500, 0, 0.2), Step(100, 1_000, 0.1)])
def test_minute_is_closed_by_a_later_tick_or_by_the_clock_and_never_changes(steps: list[Step]) -> None:
    both, rule, at_ms = Both(), Rule(), NOON_MS
    served: dict[str, dict[int, list[float]]] = {}
    both.engine.keep_time(at_ms)
    for step in [Step(1, 0, 0.5), *steps]:
        at_ms += step.gap_ms
        # The source is never away, and the engine looks at the clock as soon as there is something to close.
        both.engine.take("push", [], at_ms)
        both.engine.keep_time(at_ms)
        rule.look(at_ms)
        if step.age_ms is not None:
            tick = Tick("EURUSD", step.price, step.price + 0.001, at_ms - step.age_ms)
            reason = rule.reason(tick, at_ms)
            assert both.engine.take("push", [tick], at_ms) == [reason]
            rule.taken += [tick] * (reason is None)
            # It says that its price is still the one that was taken last.
            assert both.engine.take("push", rule.taken[-1:], at_ms) == ["duplicate"]
        both.publish()

        assert both.closed() == rule.closed(at_ms // MINUTE_MS)
        for timeframe in TIMEFRAMES:
            both.bars(timeframe, closed_only=False)
            now = both.closed(timeframe)
            assert served.get(timeframe, {}).items() <= now.items()
            served[timeframe] = now
