"""The months of 1m candles, each a table of its own on PostgreSQL."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import psycopg
import pytest
from django.db import connection, models, transaction

from instruments.models import Instrument
from market.models import Candle
from market.prices.candles import PriceBar
from market.store import candle_rows
from market.store.databases import market_tables
from tests.factories import NOON, make_candle, make_instrument
from tests.market.postgresql import ask, in_place
from tests.market.ticking import ms
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.served, pytest.mark.usefixtures("on_postgresql")]
NOVEMBER, DECEMBER, JANUARY, FEBRUARY = (
    datetime(*month, 1, tzinfo=UTC) for month in ((2026, 11), (2026, 12), (2027, 1), (2027, 2))
)
IN_NOVEMBER, IN_DECEMBER = "market_candle_1m_2026_11", "market_candle_1m_2026_12"
NO_MONTH, COARSE = "market_candle_1m_rest", "market_candle_rest"


def row(instrument: Instrument, opened: str, timeframe: str = "1m") -> candle_rows.CandleToWrite:
    return instrument.pk, timeframe, PriceBar(ms(opened), 1.5, 1.5, 1.5, 1.5, 1.0, 1.5, 1.5), "bid"


def tables() -> list[str]:
    """Where each candle is, oldest first."""
    return ask("SELECT tableoid::regclass FROM market_candle ORDER BY opened_at, timeframe")


def test_month_and_the_two_after_it_are_made_ahead_and_once() -> None:
    assert market_tables().ensure_months(NOON) == [NOVEMBER, DECEMBER, JANUARY]
    assert market_tables().months() == [NOVEMBER, DECEMBER, JANUARY]
    assert market_tables().ensure_months(DECEMBER) == [FEBRUARY]


def test_writing_makes_the_months_it_needs_from_midnight_on_in_utc() -> None:
    instrument = make_instrument()
    candle_rows.write_candles(row(instrument, at) for at in ("2026-11-30T23:59", "2026-12-01T00:00"))
    assert (tables(), market_tables().months()) == ([IN_NOVEMBER, IN_DECEMBER], [NOVEMBER, DECEMBER])


def test_waiting_candles_move_when_their_month_is_made() -> None:
    instrument = make_instrument()
    for opened_at in (NOON, DECEMBER, datetime(2024, 2, 29, tzinfo=UTC)):
        make_candle(instrument, opened_at=opened_at)
    before = list(Candle.objects.order_by("opened_at").values())
    assert tables() == [NO_MONTH] * 3
    market_tables().make_months([NOON])
    assert tables() == [NO_MONTH, IN_NOVEMBER, NO_MONTH]
    assert datetime(2024, 2, 1, tzinfo=UTC) in market_tables().ensure_months(NOON)
    assert tables() == ["market_candle_1m_2024_02", IN_NOVEMBER, IN_DECEMBER]
    assert list(Candle.objects.order_by("opened_at").values()) == before


@pytest.mark.parametrize("timeframe", ["5m", "1d"])
def test_coarser_candles_share_a_table(timeframe: str) -> None:
    candle_rows.write_candles([row(make_instrument(), "2026-11-18T00:00", timeframe)])
    assert (tables(), market_tables().months()) == ([COARSE], [])


def test_month_of_a_write_that_was_rolled_back_is_made_again() -> None:
    rows = [row(make_instrument(), "2026-11-18T12:00")]
    with transaction.atomic():
        candle_rows.write_candles(rows)
        transaction.set_rollback(True)
    candle_rows.write_candles(rows)
    assert tables() == [IN_NOVEMBER]


def test_month_is_made_amid_a_transaction_that_wrote_to_it() -> None:
    instrument = make_instrument()
    with transaction.atomic():
        make_candle(instrument)
        candle_rows.write_candles([row(instrument, "2026-11-18T12:01")])
    assert tables() == [IN_NOVEMBER, IN_NOVEMBER]


def test_two_processes_make_the_same_months_at_once(on_postgresql: str) -> None:
    ready = threading.Barrier(2, timeout=PATIENCE_S)
    made: list[datetime] = []

    def make() -> None:
        with in_place(on_postgresql):
            for year in (2020, 2021, 2022):
                ready.wait()
                made.extend(market_tables().ensure_months(datetime(year, 5, 1, tzinfo=UTC)))

    makers = [threading.Thread(target=make) for _ in range(2)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join(PATIENCE_S)
        assert not maker.is_alive()

    assert sorted(made) == market_tables().months()
    assert len(made) == 9


def test_candle_is_kept_while_a_backup_hinders_making_its_month(on_postgresql: str) -> None:
    rows = [row(make_instrument(), "2026-11-18T12:00")]
    with psycopg.connect(on_postgresql) as backup:
        backup.execute(f"LOCK TABLE {NO_MONTH} IN ACCESS SHARE MODE")
        candle_rows.write_candles(rows)
    assert tables() == [NO_MONTH]
    market_tables().ensure_months(NOON)
    assert tables() == [IN_NOVEMBER]
    # A month that is there is waited for by nobody.
    with psycopg.connect(on_postgresql) as backup:
        backup.execute(f"LOCK TABLE {NO_MONTH} IN ACCESS SHARE MODE")
        assert market_tables().make_months([NOON]) == []


def test_candle_that_is_there_already_is_not_written_again() -> None:
    rows = [row(make_instrument(), "2026-11-18T12:00")]
    candle_rows.write_candles(rows)
    before = ask("SELECT ctid FROM market_candle")
    candle_rows.write_candles(rows)
    assert ask("SELECT ctid FROM market_candle") == before


def test_last_candles_come_from_the_indexes_in_order() -> None:
    instrument = make_instrument()
    market_tables().make_months(
        datetime(year, month, 1, tzinfo=UTC) for year in (2025, 2026) for month in range(1, 13)
    )
    newest = Candle.objects.filter(instrument=instrument, timeframe="1m").order_by("-opened_at")[:500]

    with transaction.atomic(), connection.cursor() as cursor:
        # Tables as small as these are read whole where that is allowed.
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        plan = newest.explain()
    assert plan.count("Index Scan Backward") == 25
    assert "Sort  (" not in plan
    assert COARSE not in plan


def test_coarser_candles_are_looked_for_in_their_table_alone() -> None:
    market_tables().ensure_months(NOON)
    plan = Candle.objects.filter(timeframe="1h").order_by("-opened_at").explain()
    assert COARSE in plan
    assert "market_candle_1m" not in plan


def test_later_migration_reaches_every_month() -> None:
    market_tables().make_months([NOVEMBER])
    field = models.IntegerField(null=True)
    field.set_attributes_from_name("ticks")
    check = models.CheckConstraint(name="candle_is_traded", condition=models.Q(volume__gt=0))
    index = models.Index(fields=["basis", "opened_at"], name="candle_by_basis")
    try:
        with connection.schema_editor() as editor:
            editor.add_field(Candle, field)
            editor.add_constraint(Candle, check)
            editor.add_index(Candle, index)
        market_tables().make_months([DECEMBER])

        for table in (IN_NOVEMBER, IN_DECEMBER, NO_MONTH, COARSE):
            columns = ask("SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass", table)
            checks = ask("SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass", table)
            indexes = ask("SELECT indexdef FROM pg_indexes WHERE tablename = %s", table)
            assert "ticks" in columns
            assert check.name in checks
            assert any(definition.endswith("(basis, opened_at)") for definition in indexes)
    finally:
        with connection.schema_editor() as editor:
            editor.remove_index(Candle, index)
            editor.remove_constraint(Candle, check)
            editor.remove_field(Candle, field)
