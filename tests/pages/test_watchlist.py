"""The rows of the watchlist on a Saturday, and what they say while a market trades."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from core.times import epoch_ms
from instruments.facts import TEST_SYMBOL, InstrumentFacts
from instruments.hours import TradingHours
from market.prices import CandleRow, PriceBar
from pages.terminal import first_choice
from pages.watchlist import HOUR_MS, Seen, WatchlistRow, grouped, opening, percent, row_of, trading_day_of
from tests.market import ticking

FOREX, ALWAYS = "Sun 17:00-Fri 17:00", "24/7"
SATURDAY_MS = epoch_ms(datetime(2026, 11, 21, 19, 0, tzinfo=UTC))
FRIDAY_MS = epoch_ms(datetime(2026, 11, 20, tzinfo=UTC))


def make_facts(symbol: str = "EURUSD", sessions: str = FOREX, **fields: Any) -> InstrumentFacts:
    named = {"name": f"Test {symbol}", "sessions": sessions, "timezone": "America/New_York"}
    hours = TradingHours.parse("America/New_York", sessions, "")
    return msgspec.structs.replace(ticking.make_facts(symbol, **named | fields), hours=hours)


def day_bar(opened_ms: int, close: float = 1.0854) -> PriceBar:
    return PriceBar(opened_ms, 1.0843, 1.09, 1.07, close, 10.0, 1.0902, 1.0702)


CLOSED = Seen("closed", 1.0854, 1.0856, day_bar(FRIDAY_MS), previous_close=1.08)


def test_closed_market_says_when_it_opens_and_shows_its_last_session() -> None:
    hours = [CandleRow(FRIDAY_MS + n * HOUR_MS, 1, 1, 1, 1 + n / 10, 5) for n in range(3)]
    row = row_of(make_facts(), CLOSED._replace(hours=hours), SATURDAY_MS)
    assert row.about == "opens\xa0Sun\xa022:00, in\xa01\xa0d\xa03\xa0h"
    assert row.drawn["opensMs"] == SATURDAY_MS + 27 * HOUR_MS
    assert (row.change_text, row.trading_day, row.direction) == ("+0.50%", "Fri", "up")
    assert (row.low, row.high) == ("1.07000", "1.09000")
    assert (percent(-0.004), percent(2)) == ("0.00%", "+2.00%")
    assert trading_day_of(SATURDAY_MS - 7 * 24 * HOUR_MS, SATURDAY_MS) == "14 Nov"
    assert (row.drawn["closes"], row.drawn["hourMs"]) == ([1, 1.1, 1.2], FRIDAY_MS + 2 * HOUR_MS)


def test_market_that_never_closes_has_no_opening_and_its_prices_have_separators() -> None:
    seen = Seen("open", 67_412.3, 1_067_412.5, day_bar(FRIDAY_MS + 24 * HOUR_MS))
    row = row_of(make_facts("BTCUSD", ALWAYS, type="crypto", digits=2), seen, SATURDAY_MS)
    assert (row.about, row.trading_day, row.drawn["opensMs"]) == ("Test BTCUSD", "today", None)
    assert (row.bid, row.ask) == ("67,412.30", "1,067,412.50")


def test_stale_market_says_of_when_its_last_price_is() -> None:
    row = row_of(make_facts(), Seen("stale", 1.0854, 1.0856, quoted_ms=SATURDAY_MS - 4000), SATURDAY_MS)
    assert row.about == "last\xa0price\xa018:59:56\xa0UTC"


def test_what_is_not_known_is_left_out() -> None:
    without_quote = Seen("closed", day=day_bar(FRIDAY_MS, close=1.0746), previous_close=1.08)
    row = row_of(make_facts(), without_quote, SATURDAY_MS)
    assert (row.bid, row.ask, row.change_text) == ("", "", "−0.50%")
    row = row_of(make_facts(), CLOSED._replace(previous_close=None), SATURDAY_MS)
    assert (row.change, row.change_text, row.direction, row.low) == (None, "", "", "1.07000")
    row = row_of(make_facts(), Seen("stale"), SATURDAY_MS)
    assert (row.bid, row.change_text, row.trading_day, row.low, row.drawn["closes"]) == ("", "", "", "", [])


def test_what_trades_comes_first_among_groups_and_within_them() -> None:
    made = (
        ("AUDUSD", "forex", "closed"),
        ("BTCUSD", "crypto", "open"),
        ("TEST", "crypto", "open"),
        ("ETHUSD", "crypto", "stale"),
        ("ADAUSD", "crypto", "closed"),
        ("GER40", "index", "closed"),
        ("XAUUSD", "commodity", "closed"),
        ("WTI", "commodity", "closed"),
    )
    rows = [row_of(make_facts(symbol, type=kind), Seen(state), 0) for symbol, kind, state in made]
    assert [(group.title, [row.symbol for row in group.rows]) for group in grouped(rows)] == [
        ("Crypto", ["BTCUSD", "ETHUSD", "ADAUSD"]),
        ("Test", ["TEST"]),
        ("Forex", ["AUDUSD"]),
        ("Metals", ["XAUUSD"]),
        ("Commodities", ["WTI"]),
        ("Indices", ["GER40"]),
    ]


@pytest.mark.parametrize(
    ("minutes", "text"),
    [
        (1, "opens 19:01, in 1 min"),
        (60, "opens 20:00, in 1 h"),
        (23 * 60 + 59, "opens 18:59, in 23 h 59 min"),
        (24 * 60, "opens Sun 19:00, in 1 d"),
        (3 * 24 * 60 + 65, "opens Tue 20:05, in 3 d 1 h"),
        (9 * 24 * 60, "opens 30 Nov, in 9 d"),
    ],
)
def test_openings_are_as_exact_as_they_are_near(minutes: int, text: str) -> None:
    assert opening(SATURDAY_MS + minutes * 60_000, SATURDAY_MS).replace("\xa0", " ") == text


def rows_of(states: dict[str, str]) -> list[WatchlistRow]:
    """`bare` is what has had no price yet."""
    return [
        row_of(
            make_facts(symbol, type="stock" if symbol == "AAPL" else "forex"),
            Seen("stale") if state == "bare" else Seen(state, 1.0, 1.1),
            0,
        )
        for symbol, state in states.items()
    ]


@pytest.mark.parametrize(
    ("states", "first"),
    [
        ({"AAPL": "closed", "BTCUSD": "stale", "EURUSD": "closed"}, "BTCUSD"),
        ({"AAPL": "closed", "BTCUSD": "stale", "EURUSD": "open"}, "EURUSD"),
        ({"AAPL": "closed", "BTCUSD": "bare"}, "AAPL"),
        ({TEST_SYMBOL: "open", "BTCUSD": "open"}, "BTCUSD"),
        ({"AAPL": "open", "EURUSD": "open"}, "EURUSD"),
    ],
)
def test_terminal_opens_on_what_trades_even_if_its_prices_are_late(
    states: dict[str, str], first: str
) -> None:
    assert first_choice(rows_of(states)) == first
