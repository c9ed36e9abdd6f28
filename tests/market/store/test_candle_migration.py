"""Candles become partitions on PostgreSQL, and one table again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.db import IntegrityError
from pytest_django import DjangoDbBlocker

from instruments.models import Instrument
from tests.factories import NOON, make_instrument
from tests.market.postgresql import ask, empty, in_place, migrate

pytestmark = pytest.mark.served

BEFORE, AFTER = "0003_forming_minute", "0004_candle_partitions"
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
CONSTRAINTS = (
    "SELECT format('%%s %%s', conname, pg_get_constraintdef(oid)) FROM pg_constraint "
    "WHERE conrelid = 'market_candle'::regclass ORDER BY 1"
)
INDEXES = "SELECT indexdef FROM pg_indexes WHERE tablename = 'market_candle' ORDER BY 1"
COLUMNS = (
    "SELECT format('%%s %%s %%s %%s', attname, format_type(atttypid, atttypmod), attnotnull, attidentity) "
    "FROM pg_attribute WHERE attrelid = 'market_candle'::regclass AND attnum > 0 ORDER BY attnum"
)


@pytest.fixture(scope="module")
def older(postgresql: str, django_db_blocker: DjangoDbBlocker) -> str:
    """A database from before the partitions."""
    with psycopg.connect(postgresql, autocommit=True) as server:
        server.execute("CREATE DATABASE older")
    url = f"{postgresql.rpartition('/')[0]}/older"
    with django_db_blocker.unblock(), in_place(url):
        migrate(BEFORE)
    return url


@pytest.fixture(autouse=True)
def on_older(older: str, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock(), in_place(older):
        yield
        migrate(BEFORE)
        empty()


def add(instrument_id: int, timeframe: str, opened_at: datetime) -> int:
    """A candle as it was then, though the model of today may know more; returns its id."""
    (added,) = ask(
        "INSERT INTO market_candle "
        "(instrument_id, timeframe, opened_at, open, high, low, close, volume, basis) "
        "VALUES (%s, %s, %s, 2, 4, 1, 3, 5, 'mid') RETURNING id",
        *(instrument_id, timeframe, opened_at),
    )
    return int(added)


def rows() -> list[str]:
    return ask("SELECT c::text FROM (SELECT * FROM market_candle ORDER BY id) c")


@pytest.fixture
def instrument(on_older: None) -> Instrument:
    return make_instrument()


@pytest.fixture
def last(instrument: Instrument) -> int:
    """The last of some minutes about New Year, and a day."""
    for minute in (-2, -1, 0):
        add(instrument.pk, "1m", NEW_YEAR + timedelta(minutes=minute))
    return add(instrument.pk, "1d", NOON)


def test_rows_names_and_numbers_are_kept_there_and_back(instrument: Instrument, last: int) -> None:
    before, table = rows(), [ask(question) for question in (COLUMNS, CONSTRAINTS, INDEXES)]
    names = {*table[1], *table[2]}

    migrate(AFTER)
    assert rows() == before
    assert ask("SELECT tableoid::regclass FROM market_candle ORDER BY id") == [
        *("market_candle_1m_2026_12", "market_candle_1m_2026_12", "market_candle_1m_2027_01"),
        "market_candle_rest",
    ]
    after = {*ask(CONSTRAINTS), *(index.replace(" ON ONLY ", " ON ") for index in ask(INDEXES))}
    index = "CREATE UNIQUE INDEX market_candle_pkey ON public.market_candle USING btree"
    key = "market_candle_pkey PRIMARY KEY"
    assert names - after == {f"{key} (id)", f"{index} (id)"}
    assert after - names == {f"{key} (id, timeframe, opened_at)", f"{index} (id, timeframe, opened_at)"}
    assert add(instrument.pk, "1h", NEW_YEAR) == last + 1

    migrate(BEFORE)
    assert rows()[:-1] == before
    assert [ask(question) for question in (COLUMNS, CONSTRAINTS, INDEXES)] == table
    assert ask("SELECT relname FROM pg_class WHERE relname LIKE 'market_candle_1m%%'") == []
    assert add(instrument.pk, "1h", NOON) == last + 2


@pytest.mark.usefixtures("last")
def test_partitions_refuse_what_the_table_refused() -> None:
    migrate(AFTER)
    wrong = ("open = 9", "low = 0", "volume = -1", "timeframe = '2h'", "ask_low = 1", "instrument_id = 0")
    for change in wrong:
        with pytest.raises(IntegrityError):
            ask(f"UPDATE market_candle SET {change} WHERE opened_at = %s RETURNING id", NEW_YEAR)  # noqa: S608
