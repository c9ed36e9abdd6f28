"""What may not have been read yet, and when the clock closes a minute all the same."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from market.engine.engine import MOST_AT_A_LOOK, TURNS, Engine
from market.engine.runner import AWAY_S, Lateness
from market.models import Candle
from market.prices.candles import interval_start
from market.prices.quotes import Prices
from market.prices.records import CandlesEnded, Tick
from tests.factories import make_instrument, make_instruments
from tests.market.running import make_runner
from tests.market.ticking import NOON_MS
from tests.patience import until

GRACE_S = 2.0
MANY = MOST_AT_A_LOOK + 3

# Eighths, whose sums are exact.
gaps = st.lists((st.integers(1, 40) | st.just(480)).map(lambda eighths: eighths / 8), min_size=1, max_size=60)


def looks(*gaps: float) -> list[float]:
    """How late each look is, the first of them after a start."""
    lateness, now_s = Lateness(GRACE_S), 1_000.0
    found = [lateness.look(now_s)]
    for gap in gaps:
        now_s += gap
        found.append(lateness.look(now_s))
    return found


def test_nobody_knows_what_waits_at_a_start_and_for_the_grace_after_it() -> None:
    assert looks(0.25, 1.5, 0.5, 0.25) == [inf, inf, inf, 1.5, 1.5]


def test_looks_on_time_are_not_late() -> None:
    assert looks(*[0.25] * 20)[-10:] == [0.0] * 10


def test_after_an_absence_all_of_it_may_wait_for_the_grace() -> None:
    found = looks(*[0.25] * 12, 60.0, *[0.25] * 9)

    assert found[-10:] == [60.0] * 8 + [0.0] * 2


def test_machine_on_which_all_looks_are_late_is_as_late_as_one_of_them() -> None:
    assert looks(*[1.5] * 40)[-30:] == [1.5] * 30


@given(gaps)
def test_what_counts_as_read_was_there_at_the_look_before_and_never_less(gaps: list[float]) -> None:
    now_s, read = 1_000.0, []
    for gap, late_s in zip([0.0, *gaps], looks(*gaps), strict=True):
        now_s += gap
        read.append(now_s - late_s)
        assert gap <= AWAY_S or late_s >= gap

    assert all(later >= before for before, later in pairwise(read))


@pytest.mark.django_db(transaction=True)
def test_minute_is_closed_though_the_loop_is_never_free_for_long(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("market.engine.runner.AWAY_S", 0.05)
    make_instrument("EURUSD", source="push")
    engine = Engine(Prices("bid"), grace_ms=100)

    async def run() -> None:
        runner = make_runner(engine)
        assert await runner.writer.try_lease()
        await runner.start()
        minute_ms = interval_start(time.time_ns() // 1_000_000, MINUTE_MS) - MINUTE_MS
        assert runner.push("push", [Tick("EURUSD", 1.1, 1.2, minute_ms, 1.0)]) == [None]
        history = engine.prices.history(engine.instruments["EURUSD"].facts)

        def is_closed() -> bool:
            # An overloaded machine: every look at the clock is late.
            time.sleep(0.1)
            return history.last_closed_ms("1m") == minute_ms

        await until(is_closed)
        await runner.stop()

    asyncio.run(run())

    assert Candle.objects.filter(timeframe="1m", volume=1).exists()


@pytest.fixture
def engine(db: None) -> Engine:
    """Of thousands of instruments each look takes a part, but for the one after a minute's end."""
    make_instruments([f"MANY{number:03}" for number in range(MANY)])
    made = Engine(Prices("bid"))
    made.keep_time(NOON_MS + made.grace_ms)
    return made


def tick_all(engine: Engine, time_ms: int, at_ms: int) -> None:
    for facts in catalogue.active():
        assert engine.accept(Tick(facts.symbol, 1.0, 1.1, time_ms, 1.0), at_ms) is None
    engine.records.clear()


def ended(engine: Engine) -> set[str]:
    """What the clock closed since this was asked last."""
    records, engine.records = engine.records, []
    return {record.symbol for record in records if isinstance(record, CandlesEnded)}


def test_minute_of_all_is_closed_by_the_first_look_after_it(engine: Engine) -> None:
    tick_all(engine, NOON_MS + 10_000, NOON_MS + 10_000)

    engine.keep_time(NOON_MS + MINUTE_MS + engine.grace_ms)

    assert len(ended(engine)) == MANY


def test_what_is_late_is_closed_when_its_turn_comes(engine: Engine) -> None:
    """Ticks of the minute before, that came after the look at its end: nothing was known of it then."""
    at_ms = NOON_MS + MINUTE_MS + engine.grace_ms
    engine.keep_time(at_ms)
    tick_all(engine, NOON_MS + 59_000, at_ms + 10)

    # As long as more may come of that minute it stays open.
    by_look = []
    for look in range(1, 9 * TURNS):
        engine.keep_time(at_ms + engine.grace_ms + look * 250)
        by_look.append(len(ended(engine)))

    assert sum(by_look) == MANY
    assert sum(by_look[: TURNS + 1]) == MANY
    assert max(by_look) <= MANY // TURNS + 1
