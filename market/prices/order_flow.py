"""Order flow, the volume that lifted the ask and that hit the bid; and absorption: trading against one side,
heavier than usual, that did not move the price."""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from math import sqrt
from typing import Literal

import msgspec

from core.times import MINUTE_MS

from .candles import DAY_MS, interval_start
from .records import Tick, TickAccepted

# Volumes are summed as whole hundred-millionths: the published figures add up to the last digit.
UNITS = 10**8


class FlowUpdate(msgspec.Struct, frozen=True, gc=False):
    """What one tick says of it; `delta` is ask minus bid volume, its running sum starts at 00:00 UTC."""

    bid_volume: float
    ask_volume: float
    delta: float
    cumulative_delta: float
    price: float
    time_ms: int


class MinuteFlow(msgspec.Struct, frozen=True, gc=False):
    """What the updates of one minute come to, and how many absorptions were found in it."""

    opened_ms: int
    bid_volume: float
    ask_volume: float
    cumulative_delta: float
    """After its last update."""
    absorptions: int

    @property
    def delta(self) -> float:
        return (round(self.ask_volume * UNITS) - round(self.bid_volume * UNITS)) / UNITS


class Window(msgspec.Struct, array_like=True, gc=False):
    """The order flow of one window, and how often each spread was quoted, in points."""

    begins_ms: int = 0
    bid_volume: float = 0.0
    ask_volume: float = 0.0
    bid_value: float = 0.0
    ask_value: float = 0.0
    high: float = 0.0
    # No price is as high.
    low: float = 1e12
    spreads: dict[int, int] = {}

    @property
    def is_traded(self) -> bool:
        return self.high >= self.low

    def add(self, update: FlowUpdate) -> None:
        price, sold, bought = update.price, update.bid_volume, update.ask_volume
        if sold:
            self.bid_volume += sold
            self.bid_value += sold * price
        else:
            self.ask_volume += bought
            self.ask_value += bought * price
        if price > self.high:
            self.high = price
        if price < self.low:
            self.low = price

    def rescale_spreads(self, factor: float) -> None:
        quoted, self.spreads = self.spreads, {}
        for points, often in quoted.items():
            rescaled = round(points * factor)
            self.spreads[rescaled] = self.spreads.get(rescaled, 0) + often

    def add_spread(self, points: int) -> None:
        self.spreads[points] = self.spreads.get(points, 0) + 1


class FlowState(msgspec.Struct, frozen=True):
    """What must survive a restart. What is in hundred-millionths is whole."""

    day: int = 0
    """UTC days since the epoch, of the last update."""
    units: int = 0
    """The cumulative delta, in hundred-millionths."""
    side: int = 0
    half_points: int = 0
    """Twice the last mid, in points; 0 before the first."""
    minute_ms: int | None = None
    """When the minute of the last update opened; None if it is not known whole. The version before sums up
    no minutes."""
    sold: int = 0
    """The bid volume of that minute, in hundred-millionths; `bought` is its ask volume."""
    bought: int = 0
    absorptions: int = 0
    window: Window | None = None
    """The one that is open; the version before keeps none."""


class OrderFlow:
    """The order flow of one instrument, and the sums of the minute that goes on. Ticks come in order of their
    time."""

    __slots__ = (
        *("_absorptions", "_before", "_before_is_whole", "_bought", "_day_ends_ms", "_digits"),
        *("_half_points", "_is_whole", "_minute_ends_ms", "_scale", "_side", "_sold", "_units"),
    )

    def __init__(self, digits: int) -> None:
        self._digits = digits
        self._scale: int = 10**digits
        self._day_ends_ms = self._units = self._side = self._half_points = 0
        self._minute_ends_ms = self._sold = self._bought = self._absorptions = 0
        self._is_whole = True
        """Whether all of the minute is known."""
        self._before, self._before_is_whole = self._summed(), True
        """The minute with updates before this one."""

    def take(self, tick: Tick, has_sides: bool) -> FlowUpdate | None:
        """With sides only a trade that has one counts, by its size. Without them each tick counts one, for
        the side that the mid last moved to; before it has moved there is none."""
        if has_sides:
            side = tick.side
            units = round(tick.volume * UNITS)
            if not side or not units:
                return None
            price = tick.price
            if price is None:
                price = tick.ask if side > 0 else tick.bid
        else:
            side = self._side_of_move(tick)
            if not side:
                return None
            units, price = UNITS, (tick.bid + tick.ask) / 2
        time_ms = tick.time_ms
        if time_ms >= self._minute_ends_ms:
            self._begin_minute(time_ms)
        price, volume = round(price, self._digits), units / UNITS
        if side > 0:
            self._units += units
            self._bought += units
            return FlowUpdate(0.0, volume, volume, self._units / UNITS, price, time_ms)
        self._units -= units
        self._sold += units
        return FlowUpdate(volume, 0.0, -volume, self._units / UNITS, price, time_ms)

    def follow(self, record: TickAccepted) -> None:
        """Continue from another's update, which was computed when the tick arrived and not when it was
        sent."""
        self._half_points = int((record.bid + record.ask) * self._scale + 0.5)
        if record.flow_seq:
            if record.time_ms >= self._minute_ends_ms:
                self._begin_minute(record.time_ms)
            self._units = round(record.cumulative_delta * UNITS)
            self._bought += round(record.ask_volume * UNITS)
            self._sold += round(record.bid_volume * UNITS)
            self._side = 1 if record.ask_volume else -1

    def note_absorption(self, time_ms: int) -> None:
        """One that ended then: its window lies in the minute before that moment."""
        if interval_start(time_ms - 1, MINUTE_MS) == self._minute_ends_ms - MINUTE_MS:
            self._absorptions += 1

    def minute(self, opened_ms: int) -> MinuteFlow | None:
        """The sums of a minute of which nothing more comes: none but the running sum, if no update was in it.
        None if they are not known."""
        if opened_ms + MINUTE_MS < self._minute_ends_ms:
            last, is_whole = self._before, self._before_is_whole
        else:
            last, is_whole = self._summed(), self._is_whole
        if opened_ms <= last.opened_ms:
            return last if is_whole and opened_ms == last.opened_ms else None
        is_same_day = opened_ms // DAY_MS == last.opened_ms // DAY_MS
        return MinuteFlow(opened_ms, 0.0, 0.0, last.cumulative_delta if is_same_day else 0.0, 0)

    def measure_by(self, digits: int, last: Tick | None) -> None:
        """Prices have other digits from now on; what was summed up stays."""
        self._digits, self._scale = digits, 10**digits
        self._half_points = 0 if last is None else int((last.bid + last.ask) * self._scale + 0.5)

    def state(self, window: Window | None = None) -> FlowState:
        # Of one that is not whole the next process can know no more than this one.
        minute_ms = self._minute_ends_ms - MINUTE_MS if self._is_whole else None
        return FlowState(
            *(self._day_ends_ms // DAY_MS - 1, self._units, self._side, self._half_points),
            *(minute_ms, self._sold, self._bought, self._absorptions),
            window=window,
        )

    def restore(self, state: FlowState, last_ms: int = 0) -> None:
        """Go on from what was kept when the last tick was that of `last_ms`."""
        self._day_ends_ms = (state.day + 1) * DAY_MS
        self._units = state.units
        self._side = state.side
        self._half_points = state.half_points
        self._is_whole, minute_ms = state.minute_ms is not None, state.minute_ms
        if minute_ms is None:
            minute_ms = interval_start(min(last_ms, self._day_ends_ms - 1), MINUTE_MS)
        self._minute_ends_ms = minute_ms + MINUTE_MS
        self._sold, self._bought, self._absorptions = state.sold, state.bought, state.absorptions

    def _begin_minute(self, time_ms: int) -> None:
        self._before, self._before_is_whole = self._summed(), self._is_whole
        self._minute_ends_ms = interval_start(time_ms, MINUTE_MS) + MINUTE_MS
        self._sold = self._bought = self._absorptions = 0
        self._is_whole = True
        if time_ms >= self._day_ends_ms:
            self._day_ends_ms = interval_start(time_ms, DAY_MS) + DAY_MS
            self._units = 0

    def _summed(self) -> MinuteFlow:
        opened_ms = self._minute_ends_ms - MINUTE_MS
        return MinuteFlow(
            opened_ms, self._sold / UNITS, self._bought / UNITS, self._units / UNITS, self._absorptions
        )

    def _side_of_move(self, tick: Tick) -> int:
        # Whole half points, because the sums of equal mids may differ in their last bit.
        half_points = int((tick.bid + tick.ask) * self._scale + 0.5)
        if half_points != self._half_points:
            if self._half_points:
                self._side = 1 if half_points > self._half_points else -1
            self._half_points = half_points
        return self._side


WINDOW_MS = 5_000
WINDOWS = 60
LEAST_STRENGTH = 2.0
STILL_PIPS = 2
STILL_SPREADS = 2
Side = Literal["bid", "ask"]


class Absorption(msgspec.Struct, frozen=True, gc=False):
    side: Side
    """The passive side, which absorbed: the bid where sellers pressed."""
    price: float
    """Where: the mean price of what was absorbed, weighted by volume."""
    volume: float
    """What was absorbed."""
    delta: float
    """Of the whole window, in which the other side may have traded too."""
    price_range: float
    """From the lowest to the highest price of the window's order flow."""
    strength: float
    """How many standard deviations the volume is above the mean."""
    time_ms: int
    """The end of the window."""


class AbsorptionWatch:
    """One instrument, in windows of 5 s aligned to UTC. A window counts if anything was traded in it. Each
    side is compared with its own volumes, zeros too, in the 60 windows that counted before."""

    __slots__ = ("_begins_ms", "_digits", "_ends_ms", "_pip_size", "_scale", "_usual", "_window", "is_kept")

    def __init__(self, digits: int, pip_size: float) -> None:
        self._digits = digits
        self._scale: int = 10**digits
        self._pip_size = pip_size
        self._usual: dict[Side, RecentVolumes] = {
            "bid": RecentVolumes(WINDOWS),
            "ask": RecentVolumes(WINDOWS),
        }
        self._begins_ms = self._ends_ms = 0
        self._window = Window()
        self.is_kept = True
        """Whether those that count are stored as they are."""

    def measure_by(self, digits: int, pip_size: float) -> None:
        """Prices have other digits from now on, or pips another size; what is usual stays."""
        self._window.rescale_spreads(10.0 ** (digits - self._digits))
        self._digits, self._scale, self._pip_size = digits, 10**digits, pip_size

    @property
    def window(self) -> Window:
        """The open one."""
        return self._window

    def volumes(self) -> list[tuple[int, int]]:
        """The bid and ask volume of each window that counts, the oldest first."""
        return list(zip(self._usual["bid"].volumes, self._usual["ask"].volumes, strict=True))

    def restore(self, window: Window | None, volumes: Sequence[tuple[int, int]]) -> None:
        """Go on from what was kept."""
        for sold, bought in volumes:
            self._usual["bid"].add(sold)
            self._usual["ask"].add(bought)
        if window is not None and window.begins_ms:
            self._begin(window)

    def _begin(self, window: Window) -> None:
        self._window, self._begins_ms = window, window.begins_ms
        self._ends_ms = self._begins_ms + WINDOW_MS

    def take(self, tick: Tick, update: FlowUpdate | None) -> Sequence[Absorption]:
        """Add a tick and the order flow it made. Returns what the window that it ended has shown."""
        time_ms = tick.time_ms
        found = self.end_until(time_ms) if time_ms >= self._ends_ms else ()
        # The clock may end a window while a tick of it is under way; what was sent of it stays.
        if time_ms >= self._begins_ms:
            self._window.add_spread(int((tick.ask - tick.bid) * self._scale + 0.5))
            if update is not None:
                self._window.add(update)
        return found

    def count_missed(self, trade: Tick, update: FlowUpdate | None) -> None:
        """A trade of this window or a later one, without its quote, once the windows before have ended."""
        if update is not None and trade.time_ms >= self._begins_ms:
            self._window.add(update)

    def end_until(self, now_ms: int) -> Sequence[Absorption]:
        """What the window has shown, if it has ended by now: at most one for each side."""
        if now_ms < self._ends_ms:
            return ()
        window, ended_ms = self._window, self._ends_ms
        self._begin(Window(interval_start(now_ms, WINDOW_MS)))
        return self._judge(window, ended_ms) if window.is_traded else ()

    def _judge(self, window: Window, ended_ms: int) -> list[Absorption]:
        sold, bought = round(window.bid_volume * UNITS), round(window.ask_volume * UNITS)
        usual = median(window.spreads) if window.spreads else 0.0
        still = max(STILL_PIPS * self._pip_size, STILL_SPREADS * usual / self._scale)
        moved = round(window.high - window.low, self._digits)
        # A limit of 0.3 pips may be 0.30000000000000004 of them.
        is_still = moved <= still + 1e-9
        self.is_kept, found = False, []
        pressed: tuple[tuple[Side, int, float], ...]
        pressed = ("bid", sold, window.bid_value), ("ask", bought, window.ask_value)
        for side, units, value in pressed:
            strength = self._usual[side].strength(units)
            self._usual[side].add(units)
            if is_still and strength is not None and strength >= LEAST_STRENGTH:
                volume, delta = units / UNITS, (bought - sold) / UNITS
                price = round(value / volume, self._digits)
                found.append(Absorption(side, price, volume, delta, moved, round(strength, 2), ended_ms))
        return found


class RecentVolumes:
    """Mean and standard deviation of the last volumes: whole numbers, whose sums stay exact."""

    __slots__ = ("_many", "_squares", "_sum", "volumes")

    def __init__(self, many: int) -> None:
        self._many = many
        self.volumes: deque[int] = deque()
        self._sum = 0
        self._squares = 0

    def add(self, volume: int) -> None:
        self.volumes.append(volume)
        self._sum += volume
        self._squares += volume * volume
        if len(self.volumes) > self._many:
            oldest = self.volumes.popleft()
            self._sum -= oldest
            self._squares -= oldest * oldest

    def strength(self, volume: int) -> float | None:
        """(Sample) standard deviations above the mean. None if too few are known or all alike."""
        count = len(self.volumes)
        spread = count * self._squares - self._sum * self._sum
        if count < self._many or not spread:
            return None
        return (count * volume - self._sum) / sqrt(spread * count / (count - 1))


def median(counts: dict[int, int]) -> float:
    """Of values of which it is known how often each came; at least one came."""
    values = sorted(counts)
    up_to = list(accumulate(counts[value] for value in values))
    lower, upper = (bisect_right(up_to, place) for place in ((up_to[-1] - 1) // 2, up_to[-1] // 2))
    return (values[lower] + values[upper]) / 2
