"""Which symbols are wanted, and what waits of the others."""

from __future__ import annotations

import pytest

from market.engine.bus.bus_reader import (
    APART_S,
    CHECK_S,
    CHECKED_AT_ONCE,
    MOST_WAITING,
    WANTED_S,
    WaitingSymbols,
    WantedSymbols,
)
from market.engine.bus.journal import KEEP_MS
from market.prices.records import CandlesEnded, StatusRecord, TickAccepted
from tests.market.ticking import NOON_MS

NOW_S = 1_000.0
LATER_S = NOW_S + WANTED_S + CHECK_S
SYMBOLS = [f"SYMBOL{number}" for number in range(2 * CHECKED_AT_ONCE)]


def wanted(followed: set[str] | None = frozenset()) -> WantedSymbols:  # type: ignore[assignment]
    symbols = WantedSymbols(lambda: followed)
    symbols.check(NOW_S)
    return symbols


def taken(symbol: str, seq: int) -> TickAccepted:
    return TickAccepted(symbol, 1.0, 1.5, NOON_MS + seq, 1.0, seq)


@pytest.mark.parametrize(
    ("passed_s", "is_wanted"), [(APART_S / 2, False), (APART_S * 2, True), (WANTED_S + 1, False)]
)
def test_symbol_that_is_requested_again_soon_is_wanted(passed_s: float, is_wanted: bool) -> None:
    symbols = wanted()
    symbols.request("EURUSD", NOW_S)
    symbols.request("EURUSD", NOW_S + passed_s)

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
    symbols, waiting = wanted(), WaitingSymbols()
    symbols.follow("GBPUSD", NOW_S)
    status, first, second = StatusRecord("", b""), taken("GBPUSD", 1), taken("GBPUSD", 2)

    assert waiting.split([first, taken("EURUSD", 1), status, second], symbols, NOON_MS) == [
        first,
        status,
        second,
    ]
    assert waiting.symbols == ["EURUSD"]


def test_records_of_a_symbol_wait_in_their_order_with_when_they_came() -> None:
    symbols, waiting = wanted(), WaitingSymbols()
    first, ended, second = taken("EURUSD", 1), CandlesEnded("EURUSD", NOON_MS), taken("EURUSD", 2)
    waiting.split([first, ended], symbols, NOON_MS)
    waiting.split([second], symbols, NOON_MS + 5)
    found = waiting.take("EURUSD")

    assert found is not None
    assert found.records == [first, ended, second]
    assert found.came_ms == [NOON_MS, NOON_MS, NOON_MS + 5]
    assert waiting.take("EURUSD") is None


def test_too_many_of_a_symbol_are_due_and_later_ones_wait() -> None:
    symbols, waiting = wanted(), WaitingSymbols()
    waiting.split([taken("EURUSD", seq) for seq in range(MOST_WAITING)], symbols, NOON_MS)
    (symbol, found), *others = waiting.take_due(NOON_MS)

    assert (symbol, len(found.records), others) == ("EURUSD", MOST_WAITING, [])
    assert waiting.take_due(NOON_MS) == []
    assert waiting.split([taken("EURUSD", MOST_WAITING)], symbols, NOON_MS) == []


def test_what_is_too_old_is_found_a_few_symbols_at_a_time() -> None:
    symbols, waiting = wanted(), WaitingSymbols()
    waiting.split([taken(symbol, 1) for symbol in SYMBOLS], symbols, NOON_MS)
    late_ms = NOON_MS + KEEP_MS + 1
    found = [[symbol for symbol, _ in waiting.take_due(late_ms)] for _ in range(3)]

    assert waiting.take_due(NOON_MS + KEEP_MS) == []
    assert found == [SYMBOLS[:CHECKED_AT_ONCE], SYMBOLS[CHECKED_AT_ONCE:], []]
