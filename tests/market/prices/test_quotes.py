from __future__ import annotations

import pytest

from market.prices.quotes import LastQuotes
from market.prices.records import Tick
from tests.market.ticking import NOON_MS, make_facts, ms


def make_board(bid: float = 1.08, ask: float = 1.0802, at_ms: int = NOON_MS) -> LastQuotes:
    board = LastQuotes()
    board.put(Tick("EURUSD", bid, ask, at_ms, 1.0), 5)
    return board


@pytest.mark.parametrize(
    ("stale_after_s", "age_ms", "state"),
    [(60, 0, "open"), (60, 60_000, "open"), (60, 60_001, "stale"), (1, 1_000, "open"), (1, 1_001, "stale")],
)
def test_market_is_stale_after_its_own_time_without_a_tick(
    stale_after_s: int, age_ms: int, state: str
) -> None:
    assert make_board().state(make_facts(stale_after_s=stale_after_s), NOON_MS + age_ms) == state


@pytest.mark.parametrize(
    ("at", "state"),
    [("2026-11-18T21:59:59", "open"), ("2026-11-18T22:00:00", "closed"), ("2026-11-18T23:00:00", "stale")],
)
def test_closed_is_said_before_stale(at: str, state: str) -> None:
    board = make_board(at_ms=ms("2026-11-18T21:59:30"))

    assert board.state(make_facts(hours="metals"), ms(at)) == state


def test_open_market_without_a_quote_is_stale() -> None:
    assert LastQuotes().state(make_facts(), NOON_MS) == "stale"


def test_tick_a_little_ahead_of_our_clock_is_open() -> None:
    assert make_board().state(make_facts(), NOON_MS - 3_000) == "open"


def test_quote_is_rounded_and_so_is_its_spread() -> None:
    quote = make_board(1.080004, 1.080256).get("EURUSD")

    assert quote is not None
    assert quote.fields == b'"bid":1.08,"ask":1.08026,"spread":0.00026,"timestamp":"2026-11-18T12:00:00.000Z"'
