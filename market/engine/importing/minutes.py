"""Closed minutes from ticks, folded a minute at a time: what CandleBuilder makes of them one by one. Ticks
are checked in batches, and coarser candles made of the minutes."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from math import isclose, isfinite
from operator import add, eq, le, lt
from typing import NamedTuple, cast

from core.times import MINUTE_MS
from instruments.facts import InstrumentFacts
from instruments.hours import TradingHours
from market.engine.admission import TOO_HIGH, is_sent_again, reason_to_refuse
from market.engine.files.format import Bar
from market.prices.candles import COARSER, DAY_MS, VOLUME_DECIMALS, PriceBar, aggregate, interval_start
from market.prices.records import Tick

# A file that says nothing for a longer time of open market lacks ticks: a market is not that quiet.
LONGEST_QUIET_MS = DAY_MS


class FileEnd(NamedTuple):
    """The minute in which a file ended, and its last tick."""

    minute: PriceBar
    tick: Tick


class FileMinutes:
    """The minutes of one file."""

    def __init__(self, facts: InstrumentFacts, *, mid: bool, before: FileEnd | None = None) -> None:
        """`before` is where the file before this one ended."""
        self._facts = facts
        self._mid = mid
        self._before = before
        self._forming: PriceBar | None = None
        self._last: Tick | None = None
        self.gaps = 0
        """Times without ticks that were too long to be filled."""

    @property
    def forming_ms(self) -> int | None:
        return None if self._forming is None else self._forming.opened_ms

    def take(self, ticks: list[Tick]) -> Iterator[PriceBar]:
        """Good ticks in order. Yields the minutes that they close, and the flat ones between."""
        times, prices = [tick.time_ms for tick in ticks], self._prices(ticks)
        asks, volumes = [tick.ask for tick in ticks], self._volumes(ticks)
        if times and self._before is not None:
            self._go_on(self._before, times[0])
        start = 0
        while start < len(ticks):
            opened_ms = interval_start(times[start], MINUTE_MS)
            end = bisect_left(times, opened_ms + MINUTE_MS, start)
            minute = self._forming
            if minute is None or minute.opened_ms != opened_ms:
                yield from self._close_before(opened_ms)
                price, ask = prices[start], asks[start]
                minute = self._forming = PriceBar(opened_ms, price, price, price, price, 0.0, ask, ask)
            self._last = ticks[end - 1]
            self._add(minute, prices[start:end], asks[start:end], volumes[start:end])
            start = end

    def end(self) -> FileEnd | None:
        """Close the forming minute: nothing more comes."""
        minute = self._close()
        return None if minute is None or self._last is None else FileEnd(minute, self._last)

    def _go_on(self, before: FileEnd, first_ms: int) -> None:
        """Where the file before ended, unless this one is of another time."""
        self._before = None
        if before.tick.time_ms <= first_ms:
            self._forming, self._last = before

    def _prices(self, ticks: list[Tick]) -> list[float]:
        if self._mid:
            # Rounded, as live quotes are.
            digits = self._facts.digits
            return [(round(tick.bid, digits) + round(tick.ask, digits)) / 2 for tick in ticks]
        return [tick.bid for tick in ticks]

    def _volumes(self, ticks: list[Tick]) -> list[float]:
        if self._facts.volume_kind == "ticks":
            return [1.0] * len(ticks)
        return [tick.volume for tick in ticks]

    def _add(
        self, minute: PriceBar, prices: Sequence[float], asks: Sequence[float], volumes: Sequence[float]
    ) -> None:
        minute.high, minute.low = max(minute.high, *prices), min(minute.low, *prices)
        minute.close = prices[-1]
        # From left to right, as the builder adds them; `sum` of later Pythons does not.
        minute.volume = reduce(add, volumes, minute.volume)
        minute.ask_high, minute.ask_low = max(minute.ask_high, *asks), min(minute.ask_low, *asks)

    def _close_before(self, opened_ms: int) -> Iterator[PriceBar]:
        closed = self._close()
        if closed is None or self._last is None:
            return
        yield closed
        if closed.opened_ms + MINUTE_MS == opened_ms:
            return
        quiet = list(self._facts.hours.sessions_between(closed.opened_ms + MINUTE_MS, opened_ms))
        if sum(closes_ms - opens_ms for opens_ms, closes_ms in quiet) > LONGEST_QUIET_MS:
            self.gaps += 1
            return
        price, ask = closed.close, round(self._last.ask, self._facts.digits)
        for opens_ms, closes_ms in quiet:
            for flat_ms in range(opens_ms, closes_ms, MINUTE_MS):
                yield PriceBar(flat_ms, price, price, price, price, 0.0, ask, ask)

    def _close(self) -> PriceBar | None:
        minute, self._forming = self._forming, None
        if minute is not None:
            # Once a minute rather than once a tick: the highest of rounded prices is the highest, rounded.
            for name in ("open", "high", "low", "close", "ask_high", "ask_low"):
                setattr(minute, name, round(getattr(minute, name), self._facts.digits))
            minute.volume = round(minute.volume, VOLUME_DECIMALS)
        return minute


class BarMinutes(FileMinutes):
    """Those of a file whose lines are minutes. One that comes again is taken as it comes last."""

    def take(self, ticks: list[Tick]) -> Iterator[PriceBar]:
        if ticks and self._before is not None:
            self._go_on(self._before, ticks[0].time_ms)
        for bar in cast("list[Bar]", ticks):
            if self._forming is None or self._forming.opened_ms != bar.time_ms:
                yield from self._close_before(bar.time_ms)
            # How many ticks it was made of is not known.
            volume = 0.0 if self._facts.volume_kind == "ticks" else bar.volume
            prices = bar.open, bar.ask, bar.bid, bar.close
            self._forming = PriceBar(bar.time_ms, *prices, volume, bar.ask, bar.bid)
            self._last = Tick(bar.symbol, bar.close, bar.close, bar.time_ms)


# The rules for live ticks, over many ticks at once. A few passes over the columns prove that most batches
# are good; only the others are judged tick by tick.
RefusedTicks = list[tuple[int, str]]
"""The index of a tick, and the reason."""


class BatchCheck:
    """Ticks in the order of their file."""

    def __init__(self, facts: InstrumentFacts, now_ms: int, before: Tick | None = None) -> None:
        """`before` ended the file before this one."""
        self._facts = facts
        self._now_ms = now_ms
        self._before = before
        self._last: Tick | None = None
        self._numbers: dict[bool, int] = {}
        """The last of the source's own numbers of quotes, and of trades."""

    def sift(self, ticks: list[Tick]) -> tuple[list[Tick], RefusedTicks]:
        """Those that are taken, and why others are not."""
        if ticks and self._before is not None:
            # An older file does not continue it.
            self._last = self._before if self._before.time_ms <= ticks[0].time_ms else None
            self._before = None
        if ticks and self._are_all_good(ticks) and self._are_numbered_on(ticks):
            self._last = ticks[-1]
            return ticks, []
        return self._one_by_one(ticks)

    def _are_all_good(self, ticks: list[Tick]) -> bool:
        """True only if `reason_to_refuse` would have none for each of them."""
        times, bids = [tick.time_ms for tick in ticks], [tick.bid for tick in ticks]
        asks, volumes = [tick.ask for tick in ticks], [tick.volume for tick in ticks]
        session = self._facts.hours.session_at(times[0])
        return (
            (self._last is None or self._last.time_ms < times[0])
            and session is not None
            and times[-1] < session[1]
            and times[-1] <= self._now_ms
            and all(map(le, times, times[1:]))
            # No comparison with NaN is true, so what follows compares numbers.
            and all(map(le, bids, asks))
            and round(min(bids), self._facts.digits) > 0
            and max(asks) < TOO_HIGH
            and isfinite(sum(volumes))
            and min(volumes) >= 0
            and max(volumes) < TOO_HIGH
            and all(tick.price is None or 1e-8 < tick.price < TOO_HIGH for tick in ticks)
            and not any(eq(*pair) for pair in pairwise(ticks))
        )

    def _are_numbered_on(self, ticks: list[Tick]) -> bool:
        """True only if no number comes again; notes them then."""
        if [tick.source_seq for tick in ticks].count(None) == len(ticks):
            return True
        noted = dict(self._numbers)
        for are_trades in (False, True):
            of_kind = [tick.source_seq for tick in ticks if (tick.side != 0) is are_trades]
            numbers = [-1 if number is None else number for number in of_kind]
            if not all(map(lt, [noted.get(are_trades, -1), *numbers], numbers)):
                return False
            if numbers:
                noted[are_trades] = numbers[-1]
        self._numbers = noted
        return True

    def _one_by_one(self, ticks: list[Tick]) -> tuple[list[Tick], RefusedTicks]:
        taken, refused = list[Tick](), RefusedTicks()
        for index, tick in enumerate(ticks):
            reason = self._reason_to_refuse(tick)
            if reason is None:
                taken.append(tick)
                self._last = tick
                if tick.source_seq is not None:
                    self._numbers[tick.side != 0] = tick.source_seq
            else:
                refused.append((index, reason))
        return taken, refused

    def _reason_to_refuse(self, tick: Tick) -> str | None:
        if is_sent_again(tick, self._numbers.get(tick.side != 0), self._last):
            return "duplicate"
        return reason_to_refuse(tick, self._last, None, self._facts, self._now_ms)


# The coarser candles of a day, from its minutes. Where retention has dropped minutes, only the candles made
# of them remain, so they are extended and not replaced.
CoarserBars = dict[str, dict[int, PriceBar]]
"""By timeframe and opening."""
CoarserKey = tuple[str, int]

FINER = dict(zip(list(COARSER)[1:], COARSER, strict=False))
"""The candles of which each is made if there are no minutes."""
SUM_OF_A_DAY = 1e-5


class Rebuilt(NamedTuple):
    made: list[tuple[str, PriceBar]]
    left: set[CoarserKey]
    """Those that stay as they were, because their missing minutes cannot be identified."""


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
        """None if those that it was made of are not all there either."""
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
