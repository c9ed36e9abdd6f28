"""Candles become partitions on PostgreSQL, and one table again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.db import IntegrityError
from pytest_django import DjangoDbBlocker

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


def fill() -> None:
    """Some minutes about New Year, and a day."""
    instrument = make_instrument()
    for minute in (-2, -1, 0):
        add(instrument.pk, "1m", NEW_YEAR + timedelta(minutes=minute))
    add(instrument.pk, "1d", NOON)


def add(instrument_id: int, timeframe: str, opened_at: datetime) -> str:
    """A candle as it was then, though the model of today may know more; returns its id."""
    (added,) = ask(
        "INSERT INTO market_candle "
        "(instrument_id, timeframe, opened_at, open, high, low, close, volume, basis) "
        "VALUES (%s, %s, %s, 2, 4, 1, 3, 5, 'mid') RETURNING id",
        *(instrument_id, timeframe, opened_at),
    )
    return added


def rows() -> list[str]:
    return ask("SELECT c::text FROM (SELECT * FROM market_candle ORDER BY id) c")


def test_rows_are_kept_there_and_back() -> None:
    fill()
    before = rows()

    migrate(AFTER)
    between = rows()
    migrate(BEFORE)

    assert len(before) == 4
    assert (between, rows()) == (before, before)


def test_names_are_kept_and_the_key_names_what_it_is_partitioned_by() -> None:
    before = {*ask(CONSTRAINTS), *ask(INDEXES)}

    migrate(AFTER)

    after = {*ask(CONSTRAINTS), *(index.replace(" ON ONLY ", " ON ") for index in ask(INDEXES))}
    index = "CREATE UNIQUE INDEX market_candle_pkey ON public.market_candle USING btree"
    key = "market_candle_pkey PRIMARY KEY"
    assert before - after == {f"{key} (id)", f"{index} (id)"}
    assert after - before == {f"{key} (id, timeframe, opened_at)", f"{index} (id, timeframe, opened_at)"}


def test_way_back_leads_to_the_same_table() -> None:
    before = [ask(question) for question in (COLUMNS, CONSTRAINTS, INDEXES)]
    migrate(AFTER)

    migrate(BEFORE)

    assert [ask(question) for question in (COLUMNS, CONSTRAINTS, INDEXES)] == before
    assert ask("SELECT relname FROM pg_class WHERE relname LIKE 'market_candle_1m%%'") == []


def test_each_month_becomes_a_table_and_the_rest_one() -> None:
    fill()

    migrate(AFTER)

    assert ask("SELECT tableoid::regclass FROM market_candle ORDER BY id") == [
        "market_candle_1m_2026_12",
        "market_candle_1m_2026_12",
        "market_candle_1m_2027_01",
        "market_candle_rest",
    ]


@pytest.mark.parametrize("through", [[AFTER], [AFTER, BEFORE]])
def test_next_candle_gets_the_next_number(through: list[str]) -> None:
    instrument = make_instrument()
    last = add(instrument.pk, "1h", NOON)
    for migration in through:
        migrate(migration)

    assert int(add(instrument.pk, "1h", NEW_YEAR)) == int(last) + 1


def test_partitions_refuse_what_the_table_refused() -> None:
    fill()
    migrate(AFTER)

    for change in (
        "open = 9",
        "low = 0",
        "volume = -1",
        "timeframe = '2h'",
        "ask_low = 1",
        "instrument_id = 0",
    ):
        with pytest.raises(IntegrityError):
            ask(f"UPDATE market_candle SET {change} WHERE opened_at = %s RETURNING id", NEW_YEAR)  # noqa: S608
