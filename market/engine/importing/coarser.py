"""The coarser candles of a day, from its minutes. Where retention has dropped minutes, the candles made of
them are all that is known, so they are added to and not made anew."""

from collections.abc import Iterable, Iterator, Mapping
from math import isclose
from typing import NamedTuple

from core.times import MINUTE_MS
from instruments.hours import TradingHours
from market.prices.candles import COARSER, PriceBar, aggregate

CoarserBars = dict[str, dict[int, PriceBar]]
"""By timeframe and opening."""
CoarserKey = tuple[str, int]

FINER = dict(zip(list(COARSER)[1:], COARSER, strict=False))
"""What each is made of where there are no minutes."""
SUM_OF_A_DAY = 1e-5


class Rebuilt(NamedTuple):
    made: list[tuple[str, PriceBar]]
    left: set[CoarserKey]
    """Those that stay as they were: what they lack cannot be told from what they have."""


class DayBefore:
    """What is stored of a day before minutes are written into it."""

    def __init__(self, bars: CoarserBars, minutes: list[PriceBar], now_ms: int) -> None:
        self._bars = bars
        self._incomplete = {
            (timeframe, opened_ms)
            for timeframe, span_ms in COARSER.items()
            for opened_ms in _incomplete(bars[timeframe], aggregate(minutes, span_ms))
            if opened_ms + span_ms <= now_ms
        }
        """Some of their minutes were dropped."""

    def rebuild(self, minutes: list[PriceBar], first_ms: int, last_ms: int, hours: TradingHours) -> Rebuilt:
        """All that hold one of the written minutes, from the first to the last; `minutes` are all that are
        stored by now."""
        after = {timeframe: dict(bars) for timeframe, bars in self._bars.items()}
        made, left = [], set[CoarserKey]()
        for timeframe, span_ms in COARSER.items():
            for candle in aggregate(minutes, span_ms):
                opened_ms = candle.opened_ms
                if not (first_ms < opened_ms + span_ms and opened_ms <= last_ms):
                    continue
                if (timeframe, opened_ms) in self._incomplete:
                    known = self._of_finer(timeframe, opened_ms, after)
                    if known is None and not _is_whole(minutes, opened_ms, opened_ms + span_ms, hours):
                        left.add((timeframe, opened_ms))
                        continue
                    candle = known or candle
                after[timeframe][opened_ms] = candle
                made.append((timeframe, candle))
        return Rebuilt(made, left)

    def _of_finer(
        self, timeframe: str, opened_ms: int, after: Mapping[str, Mapping[int, PriceBar]]
    ) -> PriceBar | None:
        """None where those that it was made of are not all there either."""
        finer = FINER.get(timeframe)
        if finer is None:
            return None
        end_ms = opened_ms + COARSER[timeframe]
        before = _joined(self._bars[finer], opened_ms, end_ms)
        if before is None or not _are_alike(before, self._bars[timeframe][opened_ms]):
            return None
        return _joined(after[finer], opened_ms, end_ms)


def _incomplete(bars: Mapping[int, PriceBar], of_minutes: Iterable[PriceBar]) -> Iterator[int]:
    known = {candle.opened_ms: candle for candle in of_minutes}
    for opened_ms, bar in bars.items():
        if opened_ms not in known or not _are_alike(bar, known[opened_ms]):
            yield opened_ms


def _joined(bars: Mapping[int, PriceBar], start_ms: int, end_ms: int) -> PriceBar | None:
    parts = [bars[opened_ms] for opened_ms in sorted(bars) if start_ms <= opened_ms < end_ms]
    return next(aggregate(parts, end_ms - start_ms), None)


def _are_alike(one: PriceBar, other: PriceBar) -> bool:
    prices = [(each.open, each.high, each.low, each.close) for each in (one, other)]
    return prices[0] == prices[1] and isclose(one.volume, other.volume, rel_tol=1e-9, abs_tol=SUM_OF_A_DAY)


def _is_whole(minutes: list[PriceBar], start_ms: int, end_ms: int, hours: TradingHours) -> bool:
    """Whether there is a minute of all its open time."""
    sessions = hours.sessions_between(start_ms, end_ms)
    open_ms = sum(closes_ms - opens_ms for opens_ms, closes_ms in sessions)
    return sum(start_ms <= minute.opened_ms < end_ms for minute in minutes) * MINUTE_MS >= open_ms
