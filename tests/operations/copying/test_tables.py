"""What is asked of a database before it is copied, and what a fault in the middle of writing leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from sqlite3 import IntegrityError

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from market.models import EngineState
from operations.copying.copies import EMPTY_LEDGER, ledger_head, signs_of_life
from operations.copying.databases import Store, open_url
from operations.copying.tables import (
    NONE,
    decimal_form,
    digits_of,
    escaped,
    fields_of,
    plain_json,
    plain_moment,
)
from signals_feed.ledger.ledger import LedgerHead
from tests.market.postgresql import in_place


@pytest.fixture
def url(filled: Callable[[str], str]) -> str:
    return filled("sqlite")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_url(url)
    yield opened
    opened.close()


def test_ledger_ends_at_its_head(store: Store, url: str) -> None:
    with in_place(url):
        head = LedgerHead.objects.get()
    assert ledger_head(store) == (3, head.hash)
    store.tell("DROP TABLE signals_feed_ledgerhead")
    assert ledger_head(store) == EMPTY_LEDGER


def test_engine_that_beat_within_a_minute_may_still_run(store: Store, url: str) -> None:
    assert not signs_of_life(store)
    with in_place(url):
        EngineState.objects.update(writer="one:1:x", beat_at=timezone.now())
    assert signs_of_life(store)
    with in_place(url):
        EngineState.objects.update(writer="")
    assert not signs_of_life(store)


def test_fault_that_ended_the_transaction_is_told_as_it_is(store: Store) -> None:
    # SQLite rolls back by itself, too, where it cannot go on.
    with pytest.raises(IntegrityError, match="UNIQUE"), store.writing():
        store.tell("INSERT OR ROLLBACK INTO signals_feed_ledgerhead SELECT * FROM signals_feed_ledgerhead")
    assert store.ask("SELECT 1") == [(1,)]


# One text for each value, whichever database it comes from.
@given(st.lists(st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1))
def test_what_is_written_is_read_again(fields: list[str | None]) -> None:
    line = "\t".join(NONE if field is None else escaped(field) for field in fields)
    assert "\n" not in line
    assert fields_of(line) == fields


@given(st.decimals(-(10**7), 10**7, places=8, allow_nan=False))
def test_a_decimal_comes_back_from_a_binary_fraction(value: Decimal) -> None:
    assert Decimal(decimal_form(8)(float(value))) == value


def test_a_decimal_has_all_its_places_and_no_signed_zero() -> None:
    assert decimal_form(8)(1.1) == "1.10000000"
    assert decimal_form(1)(-0.0) == "0.0"
    assert decimal_form(8)(1234567890123456) == "1234567890123456.00000000"
    assert decimal_form(8)(1234567890.1234567) == "1234567890.12346000"


def test_digits_that_count_are_counted() -> None:
    assert digits_of("-1234.50000000") == 5
    assert digits_of("0.00000001") == 1
    assert digits_of("123456789.12345678") == 17


def test_json_is_the_same_however_its_numbers_and_keys_were_written() -> None:
    assert plain_json('{"b": 1e22, "a": 1e-7}') == plain_json('{"a":0.0000001,"b":10000000000000000000000}')
    assert json.loads(plain_json('[1700000000000000001, 1.0, true, "ü"]')) == [
        1700000000000000001,
        1.0,
        True,
        "ü",
    ]


def test_a_moment_has_six_places_however_a_database_has_it() -> None:
    assert plain_moment("2026-11-18 12:00:00") == "2026-11-18 12:00:00.000000"
    assert plain_moment("2026-11-18 12:00:00.5") == "2026-11-18 12:00:00.500000"
    assert plain_moment("2026-11-18T12:00:00.000001+00:00") == "2026-11-18 12:00:00.000001"
    assert plain_moment("2026-11-18 12:00:00.25+00") == "2026-11-18 12:00:00.250000"
