"""The candles of a symbol, closed and forming, and the change of its day."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import inf
from typing import Annotated, ClassVar, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from core.plain_json import encode, number
from core.struct_schemas import Moment, openapi
from core.times import MINUTE_MS, iso_s

from .candles import (
    COARSER,
    DAY_MS,
    TIMEFRAMES,
    VOLUME_DECIMALS,
    CandleBuilder,
    Closed,
    PriceBar,
    TickColumns,
    interval_start,
)
from .order_flow import UNITS

# The last 24 hours of an instrument, from its minutes.
MINUTES = DAY_MS // MINUTE_MS
NO_HIGH, NO_LOW = float("-inf"), float("inf")


class DayStatistics(msgspec.Struct, frozen=True, gc=False):
    open: float
    high: float
    low: float
    last: float
    change: float
    """Since the open."""
    change_percent: float
    volume: float


class RollingDay:
    """The last 1,440 closed minutes in a ring, a slot each, in whatever order they come."""

    def __init__(self, digits: int) -> None:
        self._digits = digits
        # Arrays, because as candles the days of 500 instruments would take 200 MB.
        self._opens, self._closes, self._volumes = (array("d", [0.0]) * MINUTES for _ in range(3))
        self._highs, self._lows = array("d", [NO_HIGH]) * MINUTES, array("d", [NO_LOW]) * MINUTES
        self._until_ms = 0
        """The end of the newest minute that has a slot."""
        self._first_ms, self._last_ms = 0, -DAY_MS
        self._units = 0
        self._high, self._low = NO_HIGH, NO_LOW
        self._is_sure = True
        """False when a minute went that may have been the highest or the lowest."""

    def add(self, minute: PriceBar) -> None:
        """Take a closed minute. Coming again it is replaced; one from before the day is left out."""
        opened_ms = minute.opened_ms
        self._pass(opened_ms + MINUTE_MS)
        if opened_ms < self._until_ms - DAY_MS:
            return
        slot = _slot(opened_ms)
        self._forget(slot)
        self._opens[slot], self._closes[slot], self._volumes[slot] = minute.open, minute.close, minute.volume
        self._highs[slot], self._lows[slot] = minute.high, minute.low
        self._units += round(minute.volume * UNITS)
        self._high, self._low = max(self._high, minute.high), min(self._low, minute.low)
        self._first_ms, self._last_ms = min(self._first_ms, opened_ms), max(self._last_ms, opened_ms)

    def add_all(self, minutes: Sequence[PriceBar]) -> None:
        """Take closed minutes of which the oldest is first, where there are none yet."""
        if not minutes:
            return
        if self._until_ms:
            for minute in minutes:
                self.add(minute)
            return
        self._last_ms = minutes[-1].opened_ms
        self._until_ms, self._is_sure = self._last_ms + MINUTE_MS, False
        within = [minute for minute in minutes if minute.opened_ms >= self._until_ms - DAY_MS]
        for minute in within:
            slot = _slot(minute.opened_ms)
            self._opens[slot], self._closes[slot] = minute.open, minute.close
            self._highs[slot], self._lows[slot] = minute.high, minute.low
            self._volumes[slot] = minute.volume
        self._units = sum([round(minute.volume * UNITS) for minute in within])

    def statistics(self, now_ms: int, forming: PriceBar | None = None) -> DayStatistics | None:
        """Of the 1,440 minutes before this one, and of the one that forms if it is given."""
        self._pass(interval_start(now_ms, MINUTE_MS))
        whole = self._closed()
        if forming is not None and forming.opened_ms >= self._until_ms - DAY_MS:
            if whole is None:
                whole = forming
            else:
                whole.take(forming)
        if whole is None:
            return None
        change = round(whole.close - whole.open, self._digits)
        percent = round(100 * (whole.close - whole.open) / whole.open, 3)
        return DayStatistics(whole.open, whole.high, whole.low, whole.close, change, percent, whole.volume)

    def _closed(self) -> PriceBar | None:
        """The closed minutes as one candle."""
        oldest_ms = self._until_ms - DAY_MS
        if self._last_ms < oldest_ms:
            return None
        self._first_ms = max(self._first_ms, oldest_ms)
        while self._highs[_slot(self._first_ms)] == NO_HIGH:
            self._first_ms += MINUTE_MS
        if not self._is_sure:
            self._high, self._low, self._is_sure = max(self._highs), min(self._lows), True
        opened, closed = self._opens[_slot(self._first_ms)], self._closes[_slot(self._last_ms)]
        return PriceBar(self._first_ms, opened, self._high, self._low, closed, self._units / UNITS, 0, 0)

    def _pass(self, until_ms: int) -> None:
        """Slots that are free again with the time lose the minute of a day ago."""
        begun_ms = self._until_ms or until_ms
        for ms in range(max(begun_ms, until_ms - DAY_MS), until_ms, MINUTE_MS):
            self._forget(_slot(ms))
        self._until_ms = max(self._until_ms, until_ms)

    def _forget(self, slot: int) -> None:
        if self._highs[slot] >= self._high or self._lows[slot] <= self._low:
            self._is_sure = False
        self._units -= round(self._volumes[slot] * UNITS)
        self._highs[slot], self._lows[slot], self._volumes[slot] = NO_HIGH, NO_LOW, 0.0


def _slot(opened_ms: int) -> int:
    return opened_ms // MINUTE_MS % MINUTES


KEPT = 500
RECENT = 10

# Answers that are remembered until the next change: as many as there are timeframes.
MOST_ANSWERS = len(TIMEFRAMES)


class CandleRow(NamedTuple):
    """A candle as it is answered: rounded, the prices by the instrument's digits."""

    opened_ms: int
    open: float
    high: float
    low: float
    close: float
    volume: float


def row_of(candle: PriceBar, digits: int) -> CandleRow:
    return _rounded(_values_of(candle), digits)


def _values_of(candle: PriceBar) -> CandleRow:
    return CandleRow(candle.opened_ms, candle.open, candle.high, candle.low, candle.close, candle.volume)


def _rounded(row: CandleRow, digits: int) -> CandleRow:
    opened_ms, opened, high, low, close, volume = row
    prices = round(opened, digits), round(high, digits), round(low, digits), round(close, digits)
    return CandleRow(opened_ms, *prices, round(volume, VOLUME_DECIMALS))


class OhlcvCandle(msgspec.Struct, gc=False):
    component: ClassVar[str] = "Candle"

    time: Annotated[Moment, Meta(description="The start of the interval.")]
    open: Annotated[float, Meta(description="The first price.")]
    high: Annotated[float, Meta(description="The highest price.")]
    low: Annotated[float, Meta(description="The lowest price.")]
    close: Annotated[float, Meta(description="The last price.")]
    volume: Annotated[
        float, Meta(ge=0, description="The size of the trades, or the number of ticks; see `volume_kind`.")
    ]
    basis: Annotated[
        str | None | UnsetType,
        openapi(
            enum=["ticks", "venue", "trades", "import", None],
            description="Of what it is made, or partly made: `trades` of a venue, a file (`import`), a "
            "`venue`'s own bars of bid and ask, or ticks alone. Null until it is closed and stored. Only on "
            "request.",
        ),
    ] = UNSET
    partial: Annotated[
        bool | None | UnsetType,
        Meta(
            description="Whether something of it was missed, and did not come in time. Null until it is "
            "closed and stored. Only on request."
        ),
    ] = UNSET


def wire_candle(row: CandleRow) -> OhlcvCandle:
    return OhlcvCandle(iso_s(row.opened_ms), *row[1:])


def encode_row(row: CandleRow) -> bytes:
    return encode(wire_candle(row))


def encode_candles(candles: Sequence[OhlcvCandle]) -> bytes:
    """The members of a JSON array, without its brackets."""
    return encode(candles)[1:-1]


CSV_FIELDS = "time,open,high,low,close,volume"


def csv_line(candle: OhlcvCandle) -> str:
    prices = map(number, (candle.open, candle.high, candle.low, candle.close, candle.volume))
    more = "" if candle.partial is UNSET else f",{candle.basis},{str(candle.partial).lower()}"
    return f"{candle.time},{','.join(prices)}{more}\n"


class EncodedBars(msgspec.Struct):
    """Encoded candles of one timeframe, oldest first."""

    closed: bytes
    """They are many and stay the same, so they are not copied."""
    forming: bytes
    """With the comma in front of it; empty if none forms."""
    last_closed_ms: int | None
    answered: tuple[object, tuple[bytes, ...]] | None = None
    """The quote with which they were last answered, and that answer: many ask between two ticks."""

    @property
    def ohlcv(self) -> bytes:
        return self.closed + self.forming


VALUES = len(CandleRow._fields) - 1
StoredCandle = tuple[int, float, float, float, float, float, float, float, str, bool, bool]
"""The fields of a `PriceBar`, as they come out of the store."""


class _Series:
    """The closed candles of one symbol and timeframe, each encoded when it is first asked for."""

    __slots__ = ("_encoded", "_joined", "_unrounded", "_values", "opened_ms")

    def __init__(self) -> None:
        # Arrays, because as tuples the candles of 500 instruments would take 500 MB.
        self.opened_ms, self._values = array("q"), array("d")
        self._encoded: dict[int, bytes] = {}
        """By the time at which they opened."""
        self._joined: tuple[int, int, bytes] | None = None
        self._unrounded: int | None = None
        """By how many digits all are still to be rounded; most of what a start loads is never read."""

    def row(self, index: int) -> CandleRow:
        if self._unrounded is not None:
            self._round(self._unrounded)
        return CandleRow(self.opened_ms[index], *self._values[index * VALUES : (index + 1) * VALUES])

    def since(self, opened_ms: int) -> list[CandleRow]:
        """Those that opened then or later, without rounding the others."""
        start, digits = bisect_left(self.opened_ms, opened_ms), self._unrounded
        places = range(start, len(self.opened_ms))
        rows = [
            CandleRow(self.opened_ms[place], *self._values[place * VALUES : (place + 1) * VALUES])
            for place in places
        ]
        return rows if digits is None else [_rounded(row, digits) for row in rows]

    def last(self) -> CandleRow | None:
        return self.since(self.opened_ms[-1])[0] if self.opened_ms else None

    def joined(self, start: int, end: int) -> bytes:
        """A range as one piece, remembered: pollers ask for the same one until a candle closes."""
        if self._joined is None or self._joined[:2] != (start, end):
            self._joined = start, end, b",".join(map(self._encode, range(start, end)))
        return self._joined[2]

    def _encode(self, index: int) -> bytes:
        opened_ms = self.opened_ms[index]
        encoded = self._encoded.get(opened_ms)
        if encoded is None:
            encoded = self._encoded[opened_ms] = encode_row(self.row(index))
        return encoded

    def fill(self, rows: Sequence[StoredCandle], digits: int) -> None:
        """Take all at once, of which the oldest is first, where there are none yet."""
        self.opened_ms.extend([row[0] for row in rows])
        self._values.extend(chain.from_iterable([row[1:6] for row in rows]))
        self._unrounded = digits

    def _round(self, digits: int) -> None:
        self._unrounded = None
        values = self._values
        for place in range(VALUES):
            decimals = VOLUME_DECIMALS if place == VALUES - 1 else digits
            values[place::VALUES] = array("d", [round(value, decimals) for value in values[place::VALUES]])

    def take_back(self, opened_ms: int) -> None:
        """The last candle, if it is this one: it forms again."""
        if self.opened_ms and self.opened_ms[-1] == opened_ms:
            self._joined = None
            self._encoded.pop(opened_ms, None)
            del self.opened_ms[-1], self._values[-VALUES:]

    def keep(self, candle: PriceBar, digits: int) -> bool:
        """False for a candle older than the last. The same one again is the last one, gone on."""
        if self.opened_ms and candle.opened_ms < self.opened_ms[-1]:
            return False
        self.take_back(candle.opened_ms)
        self._joined = None
        opened_ms, *values = row_of(candle, digits)
        self.opened_ms.append(opened_ms)
        self._values.extend(values)
        # Trimmed now and then only: dropping the first element moves all others.
        if len(self.opened_ms) >= 2 * KEPT:
            for gone_ms in self.opened_ms[:-KEPT]:
                self._encoded.pop(gone_ms, None)
            del self.opened_ms[:-KEPT], self._values[: -KEPT * VALUES]
        return True


class History:
    """The candles of one symbol in all timeframes."""

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.simulated: bool | None = None
        """Of which kind what was loaded is; None if nothing was."""
        self.builder = CandleBuilder()
        self.day = RollingDay(digits)
        self.recent: deque[PriceBar] = deque(maxlen=RECENT)
        """The last closed minutes, as candles."""
        self.closed_until_ms = 0
        """When the last closed minute ended; 0 before the first."""
        self._series: dict[str, _Series] = {timeframe: _Series() for timeframe in TIMEFRAMES}
        self._restored: dict[str, PriceBar] = {}
        """The last of each that came from the store."""
        self._answers: dict[tuple[str, int, bool], EncodedBars] = {}
        """What was asked for since the last change."""

    def add(self, time_ms: int, price: float, ask: float, volume: float) -> list[Closed]:
        self._answers.clear()
        if self.builder.extend(time_ms, price, ask, volume):
            return []
        self._reopen(time_ms)
        return self._keep(self.builder.add(time_ms, price, ask, volume))

    def add_all(self, ticks: TickColumns) -> None:
        """What `add` comes to with each of them."""
        self._answers.clear()
        number, taken = len(ticks.times_ms), 0
        while (taken := self.builder.extend_all(ticks, taken)) < number:
            times_ms, prices, asks, volumes = ticks
            self.add(times_ms[taken], prices[taken], asks[taken], volumes[taken])
            taken += 1

    def close_until(self, now_ms: int) -> list[Closed]:
        self._answers.clear()
        return self._keep(self.builder.close_until(now_ms))

    def halt(self, reopens_ms: int) -> list[Closed]:
        self._answers.clear()
        return self._keep(self.builder.halt(reopens_ms))

    def fill(self, opened_ms: int) -> list[Closed]:
        self._answers.clear()
        self._reopen(opened_ms)
        return self._keep(self.builder.fill(opened_ms))

    def add_minute(self, minute: PriceBar, *, replaces: bool = False) -> list[Closed]:
        self._answers.clear()
        return self._keep(self.builder.refill(minute, replaces=replaces))

    def add_part(self, part: PriceBar) -> list[Closed]:
        self._answers.clear()
        self._reopen(part.opened_ms)
        return self._keep(self.builder.add_part(part))

    def restore(self, timeframe: str, candle: PriceBar) -> None:
        """Take a closed candle from the store."""
        self._answers.clear()
        self._series[timeframe].keep(candle, self.digits)
        if timeframe == "1m":
            self.closed_until_ms = max(self.closed_until_ms, candle.opened_ms + MINUTE_MS)
        self._restored[timeframe] = candle

    def restore_all(self, timeframe: str, rows: Sequence[StoredCandle]) -> None:
        """Take closed candles of a timeframe from the store, the oldest first, where there are none yet."""
        if rows:
            *older, last = rows
            self._series[timeframe].fill(older, self.digits)
            self.restore(timeframe, PriceBar(*last))

    def resume(self, minutes: Iterable[PriceBar], at_ms: float = inf, over_ms: float = inf) -> None:
        """Closed minutes out of the store: what the forming candles go on from. It is `at_ms`, and what ends
        by `over_ms` has nothing more to come: a closed market's hour is stored before it ends."""
        self._answers.clear()
        closed = list(minutes)
        self.builder.resume_all(closed)
        self.day.add_all(closed)
        self.recent.extend(closed[-RECENT:])
        for timeframe, span_ms in COARSER.items():
            candle, opened_ms = self.builder.unfinished(timeframe), self.last_closed_ms(timeframe)
            if candle is None or opened_ms is None or candle.opened_ms > opened_ms:
                continue
            ends_ms = opened_ms + span_ms
            is_stored = candle.opened_ms < opened_ms or not self._is_more(candle, timeframe)
            if is_stored and ends_ms <= over_ms:
                for _ in self.builder.close_again(timeframe, opened_ms, is_early=ends_ms > at_ms):
                    pass
            else:
                self._series[timeframe].take_back(opened_ms)

    def close_like(self, other: History) -> None:
        """What is closed there is closed here."""
        self._answers.clear()
        for timeframe in COARSER:
            opened_ms, is_early = other.last_closed_ms(timeframe), other.builder.is_early(timeframe)
            if opened_ms is not None:
                self._keep(self.builder.close_again(timeframe, opened_ms, is_early=is_early))

    def _is_more(self, candle: PriceBar, timeframe: str) -> bool:
        """Whether it has more minutes than the stored one, which was written early and never again."""
        stored = self._restored[timeframe]
        volume = round(stored.volume, VOLUME_DECIMALS)
        changes = candle.high - stored.high, stored.low - candle.low, candle.volume - volume
        is_all = candle.open == stored.open and min(changes) >= 0
        return is_all and (max(changes) > 0 or candle.close != stored.close)

    def _reopen(self, time_ms: int) -> None:
        for timeframe, opened_ms in self.builder.reopen(time_ms):
            self._series[timeframe].take_back(opened_ms)

    def last_closed_ms(self, timeframe: str) -> int | None:
        opened_ms = self._series[timeframe].opened_ms
        return opened_ms[-1] if opened_ms else None

    def bars(self, timeframe: str, count: int, *, closed_only: bool) -> EncodedBars:
        """The last candles, encoded."""
        asked = timeframe, count, closed_only
        known = self._answers.get(asked)
        if known is None:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            known = self._answers[asked] = self._encode(*asked)
        return known

    def _encode(self, timeframe: str, count: int, closed_only: bool) -> EncodedBars:
        series, closed, forming = self._last(timeframe, count, closed_only)
        joined = series.joined(closed.start, closed.stop) if closed else b""
        last = b"" if forming is None else encode_row(row_of(forming, self.digits))
        return EncodedBars(joined, b"," + last if joined and last else last, self.last_closed_ms(timeframe))

    def rows(self, timeframe: str, count: int, *, closed_only: bool) -> list[CandleRow]:
        """The last candles, as values."""
        series, closed, forming = self._last(timeframe, count, closed_only)
        return [*map(series.row, closed), *([row_of(forming, self.digits)] if forming is not None else [])]

    def closed_beyond(self, other: History) -> list[tuple[str, CandleRow]]:
        """What is closed here and not there, or was closed there with less, in the order of its end."""
        found: list[tuple[int, int, str, CandleRow]] = []
        for timeframe, span_ms in TIMEFRAMES.items():
            last = other._series[timeframe].last()
            rows = self._series[timeframe].since(0 if last is None else last.opened_ms)
            found += [(row.opened_ms + span_ms, span_ms, timeframe, row) for row in rows if row != last]
        return [(timeframe, row) for _, _, timeframe, row in sorted(found)]

    def last_row(self, timeframe: str) -> CandleRow | None:
        """The last closed one, as it is answered."""
        return self._series[timeframe].last()

    def forming_row(self, timeframe: str) -> CandleRow | None:
        """The one that forms, as it is answered."""
        forming = self._last(timeframe, 1, False)[2]
        return None if forming is None else row_of(forming, self.digits)

    def _last(self, timeframe: str, count: int, closed_only: bool) -> tuple[_Series, range, PriceBar | None]:
        """Which closed ones, and the one that forms. Only the engine closes candles, never a clock."""
        series, stored = self._series[timeframe], len(self._series[timeframe].opened_ms)
        forming = None if closed_only else self.builder.forming(timeframe)
        if forming is not None and stored and forming.opened_ms <= series.opened_ms[-1]:
            forming = None
        return series, range(max(0, stored - count + (forming is not None)), stored), forming

    def _keep(self, closed: Iterator[Closed]) -> list[Closed]:
        kept = [(name, candle) for name, candle in closed if self._series[name].keep(candle, self.digits)]
        for name, candle in kept:
            if name == "1m":
                self.closed_until_ms = candle.opened_ms + MINUTE_MS
                self._remember(candle)
        return kept

    def _remember(self, minute: PriceBar) -> None:
        self.day.add(minute)
        self.recent.append(minute)
