"""The rules by which the demo's publishers keep its feed alive, simple enough to be stated on their pages."""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from statistics import fmean, pstdev
from typing import NamedTuple

from market.prices import CandleRow
from signals_feed.rules import SignalTerms

BARS, TIMEFRAME = 20, "15m"

# How far into the outer part of the range a price must stand to count as breaking out.
OUTER = 0.75

# A level nearer than this many spreads is not worth its costs.
MIN_SPREADS = 5


class MarketView(NamedTuple):
    """What a rule sees of a market: its last closed bars, oldest first, and its quote."""

    symbol: str
    bid: float
    ask: float
    bars: Sequence[CandleRow]

    @property
    def mid(self) -> float:
        return (self.bid + self.ask) / 2


class TradeIdea(NamedTuple):
    symbol: str
    direction: str
    stop_distance: float
    target_distance: float
    """Both distances are from the price that is paid."""
    strength: float
    """The strongest of all ideas is published."""


PublisherRule = Callable[[MarketView], TradeIdea | None]


def breakout(view: MarketView) -> TradeIdea | None:
    highest, lowest = max(bar.high for bar in view.bars), min(bar.low for bar in view.bars)
    if highest <= lowest:
        return None
    # -1 is the lowest of the range and 1 the highest.
    place = (view.mid - lowest) / (highest - lowest) * 2 - 1
    if abs(place) < OUTER:
        return None
    risk = fmean(bar.high - bar.low for bar in view.bars)
    return TradeIdea(view.symbol, "buy" if place > 0 else "sell", risk, 2 * risk, abs(place))


def reversion(view: MarketView) -> TradeIdea | None:
    mean, deviation = fmean(bar.close for bar in view.bars), pstdev(bar.close for bar in view.bars)
    if deviation == 0:
        return None
    away = view.mid - mean
    direction = "sell" if away > 0 else "buy"
    return TradeIdea(view.symbol, direction, abs(away), abs(away), abs(away) / deviation)


def strongest(rule: PublisherRule, views: Iterable[MarketView]) -> TradeIdea | None:
    """The idea to publish now, if any market suggests one that pays for its spread."""
    ideas = [
        idea
        for view in views
        if len(view.bars) == BARS and (idea := rule(view)) is not None
        if min(idea.stop_distance, idea.target_distance) >= MIN_SPREADS * (view.ask - view.bid)
    ]
    return max(ideas, key=lambda idea: idea.strength, default=None)


def terms_of(idea: TradeIdea, bid: Decimal, ask: Decimal, digits: int) -> SignalTerms:
    """With levels around the price that the market offers now."""
    sign, paid = (1, float(ask)) if idea.direction == "buy" else (-1, float(bid))
    prices = (paid - sign * idea.stop_distance, paid + sign * idea.target_distance)
    stop_loss, take_profit = (Decimal(f"{price:.{digits}f}") for price in prices)
    return SignalTerms(idea.symbol, idea.direction, stop_loss, take_profit)


class DemoPublisher(NamedTuple):
    name: str
    rule: PublisherRule
    statement: str


PUBLISHERS = (
    DemoPublisher(
        "house_breakout",
        breakout,
        "Follows the market that is furthest out in the range of its last 20 quarter-hour bars, if that is"
        " in the outer eighth: it buys at the upper end and sells at the lower. The stop is one average bar"
        " away, and the target two.",
    ),
    DemoPublisher(
        "house_reversion",
        reversion,
        "Trades against the market that is furthest from the mean of its last 20 quarter-hour closes,"
        " measured in their standard deviations. The target is near that mean, and the stop is equally far"
        " away in the opposite direction.",
    ),
)
STATEMENTS = {publisher.name: publisher.statement for publisher in PUBLISHERS}
