"""The minutes of a day out of its ticks alone, as the engine makes them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from market.prices import CandleBuilder, PriceBar

PRICES = ("open", "high", "low", "close", "volume", "ask_high", "ask_low")


class ArchivedTick(NamedTuple):
    seq: int
    epoch: str
    time_ms: int
    bid: float
    ask: float
    volume: float
    source: str
    accepted_ms: int | None = None
    """None, as all that follows, where nobody knows."""
    feed: str | None = None
    settled: bool | None = None
    unsettled_ms: int | None = None


class TickFacts(NamedTuple):
    """What a file of ticks says besides."""

    candle_price: str
    digits: int
    before: dict[str, Any] | None
    """The last tick before the day; None where nobody knows."""
    minutes: Sequence[dict[str, Any]]
    """Minutes that no tick made, each after the tick that came before it."""


class RebuiltMinute(NamedTuple):
    bar: PriceBar
    basis: str


class Rebuilding:
    """Takes what the engine took, in the same order."""

    def __init__(self, facts: TickFacts) -> None:
        self._facts, self._builder = facts, CandleBuilder()
        self._refilled_ms, self._is_refilled = -1, False
        self._healed: set[int] = set()
        if facts.before is not None:
            price = self._price(facts.before["bid"], facts.before["ask"])
            self._builder.resume_forming(None, price, facts.before["ask"])

    def run(self, ticks: Iterable[ArchivedTick], end_ms: int) -> Iterator[RebuiltMinute]:
        minutes = iter(self._facts.minutes)
        coming = next(minutes, None)
        for tick in ticks:
            while coming is not None and coming["after_seq"] < tick.seq:
                yield from self._minute(coming)
                coming = next(minutes, None)
            yield from self._tick(tick)
        while coming is not None:
            yield from self._minute(coming)
            coming = next(minutes, None)
        yield from self._kept(self._builder.close_until(end_ms), None)

    def _tick(self, tick: ArchivedTick) -> Iterator[RebuiltMinute]:
        self._price_by(tick.source)
        price = self._price(tick.bid, tick.ask)
        yield from self._kept(self._builder.add(tick.time_ms, price, tick.ask, tick.volume), None)

    def _minute(self, minute: dict[str, Any]) -> Iterator[RebuiltMinute]:
        opened_ms = minute["minute"]
        if minute["kind"] == "flat":
            self._price_by(minute["source"])
            yield from self._kept(self._builder.close_until(opened_ms), minute)
            yield from self._kept(self._builder.fill(opened_ms), minute)
        else:
            prices = {name: minute[name] for name in PRICES}
            bar = PriceBar(opened_ms, **prices, source=minute["source"])
            if minute["kind"] == "part":
                yield from self._kept(self._builder.add_part(bar), minute)
                self._healed.add(opened_ms)
            else:
                replaces = minute["kind"] == "whole"
                yield from self._kept(self._builder.refill(bar, replaces=replaces), minute)

    def _kept(
        self, closed: Iterable[tuple[str, PriceBar]], minute: dict[str, Any] | None
    ) -> Iterator[RebuiltMinute]:
        basis = self._facts.candle_price
        if minute is not None and minute.get("basis", "trades") != "trades":
            basis = minute["basis"]
        for timeframe, bar in closed:
            if timeframe == "1m":
                self._note(bar.opened_ms, minute)
                yield RebuiltMinute(bar, "trades" if bar.opened_ms <= self._refilled_ms else basis)

    def _note(self, opened_ms: int, minute: dict[str, Any] | None) -> None:
        """A flat minute is of trade prices where the one is that it repeats."""
        is_own = minute is not None and minute["minute"] == opened_ms
        if is_own and minute is not None and minute["kind"] in ("history", "whole"):
            self._is_refilled = minute["basis"] == "trades"
        elif not is_own:
            self._is_refilled = False
        if self._is_refilled or opened_ms in self._healed:
            self._refilled_ms = opened_ms

    def _price(self, bid: float, ask: float) -> float:
        return round((bid + ask) / 2, self._facts.digits) if self._facts.candle_price == "mid" else bid

    def _price_by(self, source: str) -> None:
        if self._builder.source != source:
            self._builder.price_by(source)


def rebuilt(ticks: Iterable[ArchivedTick], facts: TickFacts, end_ms: int) -> dict[int, RebuiltMinute]:
    return {each.bar.opened_ms: each for each in Rebuilding(facts).run(ticks, end_ms)}
