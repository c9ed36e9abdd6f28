"""The demo publishers' rules, as their statements have them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from demo.publisher_rules import (
    BARS,
    MarketView,
    TradeIdea,
    breakout,
    reversion,
    strongest,
    terms_of,
)
from market.prices import CandleRow


def bar(high: float, low: float, close: float) -> CandleRow:
    return CandleRow(opened_ms=0, open=close, high=high, low=low, close=close, volume=1.0)


FLAT = [bar(101.0, 99.0, 100.0)] * BARS


def view(
    mid: float, bars: list[CandleRow] = FLAT, symbol: str = "EURUSD", spread: float = 0.02
) -> MarketView:
    return MarketView(symbol, mid - spread / 2, mid + spread / 2, bars)


def waves() -> list[CandleRow]:
    """Closes of 99 and 101 in turn: a mean of 100, a deviation of 1."""
    return [bar(102.0, 98.0, close) for close in (99.0, 101.0)] * (BARS // 2)


@pytest.mark.parametrize(
    ("mid", "direction"), [(100.75, "buy"), (100.74, None), (99.26, None), (99.25, "sell"), (98, "sell")]
)
def test_breakout_follows_a_price_in_the_outer_eighth_of_the_range(mid: float, direction: str | None) -> None:
    idea = breakout(view(mid))
    assert (idea and idea.direction) == direction
    if idea is not None:
        # It risks one average bar for two.
        assert (idea.stop_distance, idea.target_distance) == (2.0, 4.0)


@pytest.mark.parametrize(("mid", "direction"), [(103, "sell"), (98, "buy")])
def test_reversion_trades_back_to_the_mean_and_risks_as_much(mid: float, direction: str) -> None:
    idea = reversion(view(mid, waves()))
    assert idea is not None
    assert idea.direction == direction
    assert [idea.stop_distance, idea.target_distance] == pytest.approx([abs(mid - 100)] * 2)
    assert idea.strength == pytest.approx(abs(mid - 100))


@pytest.mark.parametrize("rule", [breakout, reversion])
def test_market_that_never_moved_suggests_nothing(rule: object) -> None:
    still = [bar(100.0, 100.0, 100.0)] * BARS
    assert strongest(rule, [view(100.0, still)]) is None  # type: ignore[arg-type]


def test_the_strongest_of_all_markets_with_enough_bars_is_published() -> None:
    ideas = [view(101, symbol="A"), view(103, symbol="B"), view(99, symbol="C")]
    chosen = strongest(breakout, [*ideas, view(104, FLAT[1:], symbol="D")])
    assert chosen is not None
    assert chosen.symbol == "B"


def test_idea_that_does_not_pay_for_its_spread_is_dropped() -> None:
    assert strongest(reversion, [view(100.4, waves(), spread=0.1)]) is None
    assert strongest(reversion, [view(100.6, waves(), spread=0.1)]) is not None


@pytest.mark.parametrize(
    ("direction", "expected"),
    [("buy", ("1.09810", "1.10410")), ("sell", ("1.10200", "1.09600"))],
)
def test_levels_start_from_the_price_that_is_paid(direction: str, expected: tuple[str, ...]) -> None:
    idea = TradeIdea("EURUSD", direction, 0.002, 0.004, 1)
    found = terms_of(idea, Decimal("1.1"), Decimal("1.1001"), 5)
    assert found == ("EURUSD", direction, *map(Decimal, expected), None)
