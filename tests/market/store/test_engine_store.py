"""What the engine keeps: over faults of the database, deaths and restarts."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
import time_machine
from django.db import connection

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.engine.engine import Engine
from market.models import Candle, EngineState, FormingMinute, LastQuote
from market.prices.candles import TIMEFRAMES, PriceBar
from market.prices.quotes import Prices
from market.prices.records import JournalPosition, Tick
from market.store import candle_rows, checkpoints
from market.store.lease import Lease
from tests.databases.queries import around_statements
from tests.factories import make_calendar, make_instrument
from tests.market.running import flush, make_runner, restarted
from tests.market.ticking import NOON_MS, ms
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clock"), pytest.mark.services]


@pytest.fixture(autouse=True)
def instrument(transactional_db: None) -> Instrument:
    return make_instrument("EURUSD")


def feed(
    engine: Engine, *ticks: tuple[float, float], symbol: str = "EURUSD", start_ms: int = NOON_MS
) -> Engine:
    """Ticks as (seconds after the start, price)."""
    for after_s, price in ticks:
        at_ms = start_ms + round(after_s * 1000)
        assert engine.accept(Tick(symbol, price, price + 0.01, at_ms, 1.0), at_ms) is None
    return engine


def make_engine(*ticks: tuple[float, float], **where: Any) -> Engine:
    return feed(Engine(Prices("bid")), *ticks, **where)


def bars(engine: Engine, timeframe: str = "1m") -> list[dict[str, Any]]:
    history = engine.prices.history(catalogue.get("EURUSD"))
    ohlcv = history.bars(timeframe, 500, closed_only=False).ohlcv
    return msgspec.json.decode(b"[" + ohlcv + b"]", type=list[dict[str, Any]])


def stored() -> list[tuple[Decimal, ...]]:
    rows = Candle.objects.filter(timeframe="1m").order_by("opened_at")
    return list(rows.values_list("open", "high", "low", "close", "volume"))


@contextmanager
def broken_database(table: str = "market_candle") -> Iterator[None]:
    """A table is away."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table}_away RENAME TO {table}")


def test_closed_candle_is_written_once_though_two_write_it() -> None:
    for _ in range(2):
        flush(make_engine((1, 1.5), (30, 1.7), (59, 1.6), (60, 1.4)))
    assert stored() == [tuple(Decimal(value) for value in ("1.5", "1.7", "1.5", "1.6", "3"))]


@pytest.mark.parametrize("table", ["market_candle", "market_lastquote", "market_formingminute"])
def test_candles_and_checkpoint_are_written_together_and_later_if_not_now(table: str) -> None:
    engine = make_engine((1, 1.5), (60, 1.4))
    with broken_database(table):
        flush(engine)
    assert [model.objects.count() for model in (Candle, LastQuote, FormingMinute)] == [0, 0, 0]
    flush(engine)
    assert LastQuote.objects.get().bid == Decimal("1.4")
    flush(feed(engine, (120, 1.3)))
    assert [row[0] for row in stored()] == [Decimal("1.5"), Decimal("1.4")]


def test_cancelled_write_is_not_lost() -> None:
    engine = make_engine((1, 1.5), (60, 1.4))

    async def cancel_at_once() -> None:
        runner = make_runner(engine)
        await runner.writer.try_lease()
        task = asyncio.create_task(runner.writer.flush())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await runner.writer.flush()

    asyncio.run(cancel_at_once())
    assert len(stored()) == 1


def test_candles_of_a_deleted_instrument_do_not_hold_up_the_others(caplog: pytest.LogCaptureFixture) -> None:
    deleted = make_instrument("GONE")
    engine = make_engine((1, 1.5), (60, 1.4))
    feed(engine, (1, 1.5), (60, 1.4), symbol="GONE")
    Instrument.objects.filter(pk=deleted.pk).delete()
    flush(engine)
    assert len(stored()) == 1
    assert LastQuote.objects.count() == 1
    assert "were refused" in caplog.text


@pytest.mark.parametrize("kill_at", [1, 2, 3, 4])
@pytest.mark.parametrize("cause", ["its instrument was deleted", "the database refuses its prices"])
def test_kill_while_one_instrument_is_refused_leaves_all_others_written_or_none(
    cause: str, kill_at: int
) -> None:
    """What is behind the position is in the journal; what is before it must be in the database."""
    bad, *good = [make_instrument(symbol).pk for symbol in ("BAD", "FIRST", "SECOND")]
    price = -1.0
    if cause == "its instrument was deleted":
        Instrument.objects.filter(pk=bad).delete()
        price = 1.0
    rows: list[candle_rows.CandleToWrite] = [
        (pk, "1m", PriceBar(NOON_MS, *[price if pk == bad else 1.0] * 7), "bid")  # type: ignore[arg-type]
        for pk in (bad, *good)
    ]
    last = {pk: checkpoints.Checkpoint(Tick("", 1.0, 1.0, NOON_MS), None) for pk in (bad, *good)}
    lease, begun = Lease(), 0
    lease.take()

    def kill(sql: str, run: Callable[[], Any]) -> Any:
        nonlocal begun
        begun += "INSERT INTO" in sql and "market_lastquote" in sql
        if begun == kill_at:
            raise KeyboardInterrupt
        return run()

    with around_statements(kill), contextlib.suppress(KeyboardInterrupt):
        checkpoints.write(rows, last, lease, JournalPosition("e1", 7))
    written = EngineState.objects.get().position, Candle.objects.count(), LastQuote.objects.count()

    assert written in ((0, 0, 0), (7, len(good), len(good)))


def test_engine_and_an_import_at_once_neither_double_nor_deadlock() -> None:
    symbols = [f"S{number}" for number in range(6)]
    ids = [make_instrument(symbol).pk for symbol in symbols]
    minute = PriceBar(NOON_MS, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    ready, lease = threading.Barrier(2), Lease()
    lease.take()

    def as_engine(rows: list[candle_rows.CandleToWrite]) -> None:
        last = {pk: checkpoints.Checkpoint(Tick("", 1.0, 1.0, NOON_MS), minute) for pk in ids}
        checkpoints.write(rows, last, lease, JournalPosition("", 1))

    def write(chosen: list[int], put: Callable[[list[candle_rows.CandleToWrite]], object]) -> None:
        try:
            for number in range(20):
                ready.wait(PATIENCE_S)
                candle = PriceBar(NOON_MS + number * MINUTE_MS, *[1.0] * 7)  # type: ignore[arg-type]
                put([(pk, "1m", candle, "bid") for pk in chosen])
        finally:
            connection.close()

    tasks = (ids, as_engine), (ids[::-1], candle_rows.write_candles)
    writers = [threading.Thread(target=write, args=task) for task in tasks]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(PATIENCE_S)
        assert not writer.is_alive()

    assert Candle.objects.count() == 6 * 20


def test_forming_candles_go_on_after_a_kill_as_if_there_was_none() -> None:
    first, later = [(1, 1.5), (70, 1.7), (71, 1.2)], [(72, 1.9), (130, 1.1), (400, 1.25)]
    killed, whole = make_engine(*first), make_engine(*first, *later)
    flush(killed)
    after = restarted()
    assert [bars(after, name) for name in TIMEFRAMES] == [bars(killed, name) for name in TIMEFRAMES]
    feed(after, *later)
    assert [bars(after, name) for name in TIMEFRAMES] == [bars(whole, name) for name in TIMEFRAMES]


def test_what_was_not_flushed_is_the_only_thing_lost_and_what_is_sent_again_counts_once() -> None:
    engine = make_engine((1, 1.5), (2, 1.6), (3, 1.7))
    flush(engine)
    feed(engine, (4, 1.9))
    engine = restarted()
    reason = engine.accept(Tick("EURUSD", 1.6, 1.61, NOON_MS + 2_000, 1.0), NOON_MS + 3_500)
    assert reason == "older_than_last"
    (candle,) = bars(engine)
    assert (candle["high"], candle["volume"]) == (1.7, 3)


def test_numbered_ticks_that_are_sent_again_after_a_kill_are_known_by_their_numbers() -> None:
    ticks = [Tick("EURUSD", 1.5, 1.51, NOON_MS, source_seq=number) for number in (1, 2, 3)]
    ticks.append(msgspec.structs.replace(ticks[-1], side=1, price=1.5, source_seq=1))
    engine = make_engine()
    assert engine.take("push:desk", ticks, NOON_MS) == [None] * 4
    flush(engine)
    engine = restarted()

    assert engine.take("push:desk", ticks, NOON_MS) == ["duplicate"] * 4
    assert bars(engine)[0]["volume"] == 4


@pytest.mark.parametrize("millisecond", [1, 118, 250, 499, 999])
def test_last_quote_keeps_its_own_time_to_the_millisecond(millisecond: int) -> None:
    flush(make_engine((millisecond / 1000, 1.08412)))
    quote = restarted().prices.quotes.get("EURUSD")
    assert quote is not None
    assert (quote.bid, quote.time_ms) == (1.08412, NOON_MS + millisecond)


@pytest.mark.parametrize(
    ("timeframe", "at"), [("1d", "00:00"), ("4h", "20:00"), ("1h", "23:00"), ("1m", "23:59")]
)
def test_day_that_ended_while_the_service_was_down_is_closed_at_the_start(
    clock: time_machine.Traveller, timeframe: str, at: str
) -> None:
    start_ms = ms("2026-11-18T23:59:10")
    flush(make_engine((0, 1.5), (20, 1.7), start_ms=start_ms))
    clock.move_to("2026-11-19T00:10:00Z")
    engine = restarted()
    engine.keep_time(ms("2026-11-19T00:10"))
    flush(engine)
    row = Candle.objects.get(timeframe=timeframe)
    assert (f"{row.opened_at:%d %H:%M}", row.close) == (f"18 {at}", Decimal("1.7"))


def test_friday_is_closed_on_monday(clock: time_machine.Traveller) -> None:
    make_instrument(
        "GBPUSD", calendar=make_calendar("fx", "Sun 17:00-Fri 17:00", timezone="America/New_York")
    )
    flush(make_engine((0, 1.5), (90, 1.7), symbol="GBPUSD", start_ms=ms("2026-11-20T20:00")))
    clock.move_to("2026-11-23T08:00:00Z")
    engine = restarted()
    engine.keep_time(ms("2026-11-23T08:00"))
    flush(engine)
    assert Candle.objects.get(timeframe="1d").opened_at == datetime(2026, 11, 20, tzinfo=UTC)


def test_flat_candle_after_a_restart_repeats_the_last_quote() -> None:
    flush(make_engine((1, 1.5), (30, 1.9), (50, 1.6)))
    engine = restarted()
    for after_s in range(55, 185, 5):
        engine.take("push", [], NOON_MS + after_s * 1000)
        engine.keep_time(NOON_MS + after_s * 1000)
    flush(engine)

    flat = Candle.objects.filter(timeframe="1m", volume=0).latest("opened_at")
    assert (flat.close, flat.ask_high, flat.ask_low) == (Decimal("1.6"), Decimal("1.61"), Decimal("1.61"))


def test_stopped_engine_has_written_everything_and_forgets_it() -> None:
    engine = make_engine((1, 1.5), (60, 1.4))

    async def run_and_stop() -> None:
        runner = make_runner(engine)
        await runner.writer.try_lease()
        await runner.stop()

    asyncio.run(run_and_stop())
    assert len(stored()) == 1
    assert engine.prices.quotes.get("EURUSD") is None
