"""What may not have been read yet, when the clock closes a minute all the same, and when a process says that
it hears no engine."""

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
from market.runtime import HELD_UP_S, LOOK_S, SILENT_S, STOOD_STILL_S, EngineLiveness, MarketRuntime
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


@pytest.mark.parametrize(
    ("gaps", "last"),
    [
        # At a start and for the grace after it all of it may wait.
        ([0.25, 1.5, 0.5, 0.25], [inf, inf, inf, 1.5, 1.5]),
        ([0.25] * 20, [0.0] * 10),
        ([*[0.25] * 12, 60.0, *[0.25] * 9], [60.0] * 8 + [0.0] * 2),
        # Where all looks are late, each is as late as one of them.
        ([1.5] * 40, [1.5] * 30),
    ],
)
def test_look_is_as_late_as_what_may_wait(gaps: list[float], last: list[float]) -> None:
    assert looks(*gaps)[-len(last) :] == last


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


def test_minute_of_many_instruments_is_closed_by_the_first_look_after_it_and_what_is_late_in_turn(
    db: None,
) -> None:
    make_instruments([f"MANY{number:03}" for number in range(MANY)])
    engine, at_ms = Engine(Prices("bid")), NOON_MS + MINUTE_MS

    def tick_all(time_ms: int, came_ms: int) -> None:
        for facts in catalogue.active():
            assert engine.accept(Tick(facts.symbol, 1.0, 1.1, time_ms, 1.0), came_ms) is None

    def ended(at_ms: int) -> int:
        """How many the clock closes by this look."""
        engine.records.clear()
        engine.keep_time(at_ms)
        return len({record.symbol for record in engine.records if isinstance(record, CandlesEnded)})

    engine.keep_time(NOON_MS + engine.grace_ms)
    tick_all(NOON_MS + 10_000, NOON_MS + 10_000)
    assert ended(at_ms + engine.grace_ms) == MANY
    # Ticks of a minute that come after the look at its end: it stays open as long as more may come.
    at_ms += MINUTE_MS + engine.grace_ms
    assert ended(at_ms) == 0
    tick_all(at_ms - engine.grace_ms - 1_000, at_ms + 10)
    by_look = [ended(at_ms + engine.grace_ms + look * 250) for look in range(1, 9 * TURNS)]
    assert sum(by_look) == sum(by_look[: TURNS + 1]) == MANY
    assert max(by_look) <= MANY // TURNS + 1


class Ear:
    def __init__(self) -> None:
        self.told: list[tuple[float, bool]] = []
        self.now_s = 0.0
        self.liveness = EngineLiveness()
        self.liveness.watchers.append(lambda is_heard: self.told.append((self.now_s, is_heard)))

    def pass_time(self, seconds: float, *, engine_speaks: bool) -> None:
        for step in range(1, round(seconds / LOOK_S) + 1):
            self.now_s += LOOK_S
            if engine_speaks and step % 4 == 0:
                self.liveness.heard(self.now_s)
            self.liveness.look(self.now_s)


def test_silence_is_told_once_and_within_three_seconds_and_so_is_its_end() -> None:
    ear = Ear()
    ear.now_s = 32_715
    ear.liveness.heard(ear.now_s)
    ear.pass_time(600, engine_speaks=True)
    assert ear.told == []
    silent_s = ear.now_s
    ear.pass_time(30, engine_speaks=False)
    ((told_s, is_heard),) = ear.told
    assert not is_heard
    assert SILENT_S < told_s - silent_s < 3
    ear.pass_time(5, engine_speaks=True)
    assert ear.told[1:] == [(silent_s + 31, True)]
    assert ear.liveness.losses == 1


@pytest.mark.parametrize(
    ("held_up_s", "is_heard", "told"), [(STOOD_STILL_S, True, []), (HELD_UP_S + 3, False, [False])]
)
def test_process_that_was_held_up_reads_first_what_came_meanwhile(
    held_up_s: float, is_heard: bool, told: list[bool]
) -> None:
    ear = Ear()
    ear.pass_time(4, engine_speaks=True)
    ear.now_s += held_up_s
    ear.liveness.look(ear.now_s)
    if is_heard:
        ear.liveness.heard(ear.now_s)
    ear.pass_time(2, engine_speaks=is_heard)
    assert [is_heard for _, is_heard in ear.told] == told


@pytest.mark.parametrize("first", ["heard", "look"])
def test_process_that_stood_still_says_so_before_it_passes_on_what_came_meanwhile(first: str) -> None:
    ear = Ear()
    ear.pass_time(4, engine_speaks=True)
    ear.now_s += 20
    getattr(ear.liveness, first)(ear.now_s)
    assert ear.told == [(24, False)]
    ear.liveness.heard(ear.now_s)
    assert ear.told == [(24, False)]
    ear.pass_time(4, engine_speaks=True)
    assert ear.told[1:] == [(24 + LOOK_S, True)]
    assert ear.liveness.losses == 0


def test_process_that_stood_still_and_hears_nothing_stays_stale() -> None:
    ear = Ear()
    ear.now_s += 20
    ear.liveness.look(ear.now_s)
    ear.pass_time(30, engine_speaks=False)
    ear.pass_time(4, engine_speaks=True)
    assert ear.told == [(20, False), (51, True)]


async def test_market_that_was_stopped_misses_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("market.runtime.LOOK_S", 0.001)
    stopped, other = MarketRuntime(), EngineLiveness()
    looks: list[EngineLiveness] = []
    for liveness in (stopped.liveness, other):
        monkeypatch.setattr(liveness, "look", lambda _, liveness=liveness: looks.append(liveness))
        liveness.start()
    await stopped.stop()
    looks.clear()
    await until(lambda: looks.count(other) > 2)
    other.stop()
    assert stopped.liveness not in looks
