"""What a connection has said so far, as a table."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from market.engine.venues.venue_quotes import OUT_OF_STEP_MS, VenueQuotes
from market.prices.records import Tick

from .fakes.venue import NOON_MS


class OneVenue:
    """Quotes of one symbol, and what they refused."""

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.quotes = VenueQuotes({"EURUSD": "EUR/USD"}, lambda reason, _: self.refused.update([reason]))

    def quote(self, time_ms: int = NOON_MS, bid: float = 1.08, ask: float = 1.0802) -> list[int]:
        return [tick.time_ms for tick in self.quotes.quote("EUR/USD", bid, ask, time_ms)]

    def trade(
        self, time_ms: int = NOON_MS, seq: int = 1, price: float = 1.08, size: float = 1.0
    ) -> list[int]:
        return [tick.time_ms for tick in self.traded(time_ms, seq, price, size)]

    def traded(self, time_ms: int, seq: int, price: float = 1.08, size: float = 1.0) -> list[Tick]:
        return self.quotes.trade("EUR/USD", price, size, 1, time_ms, seq)


def test_what_a_channel_told_late_is_not_before_what_it_follows_unless_it_is_much_older() -> None:
    venue = OneVenue()
    assert venue.quote(NOON_MS) == [NOON_MS]
    assert venue.trade(NOON_MS - OUT_OF_STEP_MS) == [NOON_MS]
    assert venue.trade(NOON_MS - OUT_OF_STEP_MS - 1) == [NOON_MS - OUT_OF_STEP_MS - 1]
    assert venue.trade(NOON_MS + 1) == [NOON_MS + 1]
    assert venue.quote(NOON_MS) == [NOON_MS + 1]


@pytest.mark.parametrize("number", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("field", ["bid", "ask", "price", "size"])
def test_number_that_is_no_price_is_malformed(field: str, number: float) -> None:
    venue = OneVenue()
    venue.quote()
    say: Any = venue.quote if field in ("bid", "ask") else venue.trade
    with pytest.raises(ValueError, match="not a price or a size"):
        say(**{field: number})


@pytest.mark.parametrize(("seqs", "refused"), [((7, 8, 8, 6, 9), {}), ((7, 9), {"gap": 1})])
def test_hole_is_counted_before_the_first_quote_too_and_a_number_that_comes_again_is_none(
    seqs: tuple[int, ...], refused: dict[str, int]
) -> None:
    venue = OneVenue()
    for seq in seqs:
        venue.trade(seq=seq)
    assert venue.refused == refused


def test_trade_that_fills_a_hole_a_moment_late_counts_and_one_that_comes_again_keeps_its_number() -> None:
    venue = OneVenue()
    venue.quote()
    # The engine takes what has no number, and no number twice.
    sent = [(1, 0), (3, 10), (2, 0), (2, 0), (4, 20)]
    ticks = [tick for seq, after_ms in sent for tick in venue.traded(NOON_MS + after_ms, seq)]
    assert [(tick.source_seq, tick.time_ms - NOON_MS) for tick in ticks] == [
        *((1, 0), (3, 10), (None, 10), (2, 10), (4, 20))
    ]


def test_crossed_quote_does_not_price_the_trade_after_it() -> None:
    venue = OneVenue()
    venue.quote(bid=1.09, ask=1.08)
    assert venue.trade() == []
    assert venue.refused == {"crossed": 1}
