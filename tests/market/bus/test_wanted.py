"""Which symbols are wanted, and what is put off of the others."""

from __future__ import annotations

import pytest

from market.engine.bus.bus_reader import (
    APART_S,
    LOOK_S,
    LOOKED_AT_ONCE,
    MOST_PUT_OFF,
    WANTED_S,
    PutOffRecords,
    WantedSymbols,
)
from market.engine.bus.journal import KEEP_MS
from market.prices.records import CandlesEnded, StatusRecord, TickAccepted
from tests.market.ticking import NOON_MS

NOW_S = 1_000.0
LATER_S = NOW_S + WANTED_S + LOOK_S
SYMBOLS = [f"SYMBOL{number}" for number in range(2 * LOOKED_AT_ONCE)]


def wanted(followed: set[str] | None = frozenset()) -> WantedSymbols:  # type: ignore[assignment]
    symbols = WantedSymbols(lambda: followed)
    symbols.check(NOW_S)
    return symbols


def taken(symbol: str, seq: int) -> TickAccepted:
    return TickAccepted(symbol, 1.0, 1.5, NOON_MS + seq, 1.0, seq)


@pytest.mark.parametrize(
    ("passed_s", "is_wanted"), [(APART_S / 2, False), (APART_S * 2, True), (WANTED_S + 1, False)]
)
def test_symbol_that_is_looked_at_again_soon_is_wanted(passed_s: float, is_wanted: bool) -> None:
    symbols = wanted()
    symbols.look("EURUSD", NOW_S)
    symbols.look("EURUSD", NOW_S + passed_s)

    assert ("EURUSD" in symbols) is is_wanted
    assert symbols.are_none is not is_wanted


@pytest.mark.parametrize(("followed", "is_wanted"), [({"EURUSD"}, True), ({"GBPUSD"}, False), (None, True)])
def test_symbol_is_wanted_as_long_as_somebody_follows_it(followed: set[str] | None, is_wanted: bool) -> None:
    symbols = wanted(followed)
    symbols.follow("EURUSD", NOW_S)
    symbols.check(LATER_S)

    assert ("EURUSD" in symbols) is is_wanted
    assert ("XAUUSD" in symbols) is (followed is None)


def test_what_is_wanted_and_what_has_no_symbol_comes_at_once_in_its_order() -> None:
    symbols, put_off = wanted(), PutOffRecords()
    symbols.follow("GBPUSD", NOW_S)
    status, first, second = StatusRecord("", b""), taken("GBPUSD", 1), taken("GBPUSD", 2)

    assert put_off.sift([first, taken("EURUSD", 1), status, second], symbols, NOON_MS) == [
        first,
        status,
        second,
    ]
    assert put_off.symbols == ["EURUSD"]


def test_records_of_a_symbol_are_put_off_in_their_order_with_when_they_came() -> None:
    symbols, put_off = wanted(), PutOffRecords()
    first, ended, second = taken("EURUSD", 1), CandlesEnded("EURUSD", NOON_MS), taken("EURUSD", 2)
    put_off.sift([first, ended], symbols, NOON_MS)
    put_off.sift([second], symbols, NOON_MS + 5)
    found = put_off.take("EURUSD")

    assert found is not None
    assert found.records == [first, ended, second]
    assert found.came_ms == [NOON_MS, NOON_MS, NOON_MS + 5]
    assert put_off.take("EURUSD") is None


def test_too_many_of_a_symbol_are_taken_in_and_it_is_put_off_further() -> None:
    symbols, put_off = wanted(), PutOffRecords()
    put_off.sift([taken("EURUSD", seq) for seq in range(MOST_PUT_OFF)], symbols, NOON_MS)
    (symbol, found), *others = put_off.take_too_much(NOON_MS)

    assert (symbol, len(found.records), others) == ("EURUSD", MOST_PUT_OFF, [])
    assert put_off.take_too_much(NOON_MS) == []
    assert put_off.sift([taken("EURUSD", MOST_PUT_OFF)], symbols, NOON_MS) == []


def test_what_is_too_old_is_found_a_few_symbols_at_a_time() -> None:
    symbols, put_off = wanted(), PutOffRecords()
    put_off.sift([taken(symbol, 1) for symbol in SYMBOLS], symbols, NOON_MS)
    late_ms = NOON_MS + KEEP_MS + 1
    found = [[symbol for symbol, _ in put_off.take_too_much(late_ms)] for _ in range(3)]

    assert put_off.take_too_much(NOON_MS + KEEP_MS) == []
    assert found == [SYMBOLS[:LOOKED_AT_ONCE], SYMBOLS[LOOKED_AT_ONCE:], []]
