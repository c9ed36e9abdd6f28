"""A minute of which something was missed is partial, unless that came later, whoever goes on with it."""

from __future__ import annotations

import pytest

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from market.engine.admission import FeedChoice
from market.engine.engine import NO_ROOM, Engine
from market.prices.candles import PriceBar
from market.prices.quotes import Prices
from market.prices.records import Tick
from market.store.checkpoints import Checkpoint
from tests.factories import make_instrument
from tests.market.running import flush, restarted
from tests.market.ticking import NOON_MS
from tests.patience import wait_until

pytestmark = pytest.mark.django_db


@pytest.fixture
def engine() -> Engine:
    """Kraken is connected, and a trade came at noon."""
    make_instrument("EURUSD", source="kraken", order_flow_source="trades", volume_kind="traded")
    engine = connected(Engine(Prices("bid")))
    trade(engine, 0, 1)
    return engine


def connected(engine: Engine) -> Engine:
    engine.feed_state("kraken").source_ms = 0
    return engine


def made(second: int, number: int) -> Tick:
    price = 1.0 + second / 1_000
    return Tick("EURUSD", price, price + 0.1, NOON_MS + second * 1000, 1.0, 1, price, number)


def trade(engine: Engine, second: int, number: int) -> str | None:
    return engine.take("kraken", [made(second, number)], NOON_MS + second * 1000)[0]


def refuse_for_want_of_room(engine: Engine, second: int) -> None:
    engine.has_room = lambda: False
    assert trade(engine, second, second) == NO_ROOM
    engine.has_room = lambda: True


def cut(engine: Engine, second: int) -> None:
    engine.breaks("kraken", "EURUSD", NOON_MS + second * 1000, is_over=True)


def begin(engine: Engine, second: int) -> None:
    engine.breaks("kraken", "EURUSD", NOON_MS + second * 1000, is_over=False)


def heal(engine: Engine, second: int, *trades: Tick) -> None:
    at_ms = NOON_MS + second * 1000
    unheard = engine.unheard("EURUSD", at_ms)
    assert unheard is not None
    engine.heal("EURUSD", trades, at_ms, unheard.since_ms)


def close(engine: Engine, minutes: int = 1) -> dict[int, bool]:
    """The minutes from noon on, and whether each is partial."""
    state = engine.instruments["EURUSD"]
    engine.end_until(state, NOON_MS + minutes * MINUTE_MS)
    rows = [candle for _, timeframe, candle, _ in engine.rows if timeframe == "1m"]
    return {(row.opened_ms - NOON_MS) // MINUTE_MS: row.partial for row in rows}


def test_minute_of_which_ticks_were_refused_for_want_of_room_is_partial(engine: Engine) -> None:
    refuse_for_want_of_room(engine, 59)
    refuse_for_want_of_room(engine, 60)
    for number, second in enumerate((90, 130), 2):
        assert trade(engine, second, number) is None

    assert close(engine, 3) == {0: True, 1: True, 2: False}


def test_minute_in_which_redis_is_too_full_for_a_push_is_partial() -> None:
    """The engine hears of no push then."""
    make_instrument("EURUSD", source="push")
    engine = Engine(Prices("bid"))
    assert engine.take("push:desk", [made(10, 1)], NOON_MS + 10_000) == [None]
    engine.has_room = lambda: False
    engine.keep_time(NOON_MS + 20_000)
    engine.has_room = lambda: True
    assert engine.take("push:desk", [made(70, 2)], NOON_MS + 70_000) == [None]

    assert close(engine, 2) == {0: True, 1: False}


def test_hole_behind_which_trades_were_taken_stays_when_a_later_one_is_filled(engine: Engine) -> None:
    cut(engine, 10)
    # What is missed in between is not told.
    begin(engine, 12)
    assert trade(engine, 20, 9) is None
    cut(engine, 30)
    begin(engine, 32)
    heal(engine, 32, made(31, 10))
    assert trade(engine, 40, 11) is None

    assert close(engine) == {0: True}


def test_minute_is_whole_where_all_that_was_missed_has_come(engine: Engine) -> None:
    for second, number in ((10, 2), (30, 4)):
        cut(engine, second)
        begin(engine, second + 2)
        heal(engine, second + 2, made(second + 1, number))
        assert trade(engine, second + 5, number + 1) is None

    assert close(engine) == {0: False}


def bar(minute: int) -> PriceBar:
    return PriceBar(NOON_MS + minute * MINUTE_MS, 1.0, 1.2, 0.9, 1.1, 7.0, 1.2, 0.9)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("tells_history", [True, False])
@pytest.mark.parametrize("after_s", [65, 600])
def test_minute_in_which_an_engine_ended_is_the_venue_s_own_or_partial(
    engine: Engine, after_s: int, tells_history: bool
) -> None:
    wait_until(lambda: flush(engine))
    successor = connected(restarted())
    begin(successor, after_s)
    if tells_history:
        successor.backfill("EURUSD", [bar(0)], "trades", NOON_MS + after_s * 1000)
    assert close(successor) == {0: not tells_history}
    (volume,) = {candle.volume for _, _, candle, _ in successor.rows}
    assert volume == (7.0 if tells_history else 1.0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("comes_later", [True, False])
def test_next_engine_knows_of_a_hole_that_trades_do_not_fill(engine: Engine, comes_later: bool) -> None:
    wait_until(lambda: flush(engine))
    refuse_for_want_of_room(engine, 10)
    if comes_later:
        assert trade(engine, 20, 12) is None
    wait_until(lambda: flush(engine))
    successor = connected(restarted())
    begin(successor, 30)
    heal(successor, 30, made(25, 13))

    assert close(successor) == {0: True}


@pytest.mark.django_db(transaction=True)
def test_minute_that_trades_have_filled_is_no_whole_one_of_the_next_engine(engine: Engine) -> None:
    """Which does not know that their prices are no bids."""
    cut(engine, 10)
    begin(engine, 12)
    heal(engine, 12, made(11, 2))
    wait_until(lambda: flush(engine))
    successor = connected(restarted())
    begin(successor, 30)
    heal(successor, 30)

    assert close(successor) == {0: True}


def test_series_of_the_other_kind_begins_whole(engine: Engine) -> None:
    cut(engine, 10)
    state = engine.instruments["EURUSD"]
    state.begin(Checkpoint(None, None, simulated=True), FeedChoice(("demo",), NOON_MS), NOON_MS)
    engine.prices.histories.clear()
    assert engine.accept(made(20, 2), NOON_MS + 20_000, "demo") is None

    assert close(engine) == {0: False}


@pytest.mark.parametrize("by_tick", [True, False])
def test_successor_that_repeats_what_was_not_written_makes_the_same_minutes_partial(
    engine: Engine, by_tick: bool
) -> None:
    cut(engine, 10)
    if by_tick:
        assert trade(engine, 65, 9) is None
    else:
        close(engine)
    successor = Engine(Prices("bid"))
    for record in engine.records:
        successor.repeat(record, NOON_MS + 70_000)

    hours = [e.prices.history(catalogue.get("EURUSD")).builder.forming("1h") for e in (successor, engine)]
    assert close(successor) == {0: True}
    assert successor.rows == engine.rows
    assert hours[0] == hours[1]
