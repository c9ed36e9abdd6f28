"""Which mark a result gets, from the evidence of what decided."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from market.engine.feeds import supervisor
from signals_feed.marks import Mark, mark_of
from signals_feed.record import VENUES


class Decided(NamedTuple):
    feed: str
    source: str = "tick"
    simulated: bool | None = False


KRAKEN = Decided("kraken")


@pytest.mark.parametrize(
    ("decisions", "mark"),
    [
        ([KRAKEN, Decided("oanda", "first_after_gap")], Mark.VENUE),
        ([KRAKEN], Mark.VENUE),
        ([KRAKEN, Decided("push:7")], Mark.RECORDED),
        ([KRAKEN, Decided("kraken", "candle")], Mark.RECORDED),
        ([KRAKEN, Decided("kraken:moved")], Mark.RECORDED),
        ([KRAKEN, Decided("kraken+push:7")], Mark.RECORDED),
        # Of before: nothing says whose prices they were.
        ([Decided("", simulated=None)] * 2, Mark.RECORDED),
        ([KRAKEN, Decided("demo")], Mark.DEMONSTRATION),
        ([Decided("replay"), Decided("", "candle")], Mark.DEMONSTRATION),
        ([Decided("somewhere", simulated=True), KRAKEN], Mark.DEMONSTRATION),
        ([], None),
    ],
)
def test_mark_is_that_of_the_weakest_price(decisions: list[Decided], mark: Mark | None) -> None:
    assert mark_of("", decisions, is_demo=False) == mark


def test_what_does_not_hold_is_not_verified_whoever_made_the_price() -> None:
    assert mark_of("pnl is 99", [KRAKEN], is_demo=True) == Mark.NOT_VERIFIED


def test_signals_of_the_demo_are_a_demonstration_at_any_price() -> None:
    assert mark_of("", [KRAKEN], is_demo=True) == Mark.DEMONSTRATION


def test_venues_are_those_that_the_market_has() -> None:
    assert set(VENUES) == set(supervisor.VENUES)
