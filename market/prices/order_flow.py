"""Who pressed: the volume that lifted the ask and that hit the bid. Pure."""

from __future__ import annotations

import msgspec

from .candles import TIMEFRAMES
from .records import Tick, TickAccepted

DAY_MS = TIMEFRAMES["1d"]

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


class FlowState(msgspec.Struct, frozen=True):
    """What must survive a restart."""

    day: int = 0
    """UTC days since the epoch, of the last update."""
    units: int = 0
    """The cumulative delta, in hundred-millionths."""
    side: int = 0
    half_points: int = 0
    """Twice the last mid, in points; 0 before the first."""


class OrderFlow:
    """The order flow of one instrument. Ticks come in order of their time."""

    __slots__ = ("_day_ends_ms", "_digits", "_half_points", "_scale", "_side", "_units")

    def __init__(self, digits: int) -> None:
        self._digits = digits
        self._scale: int = 10**digits
        self._day_ends_ms = self._units = self._side = self._half_points = 0

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
        if time_ms >= self._day_ends_ms:
            self._day_ends_ms = time_ms - time_ms % DAY_MS + DAY_MS
            self._units = 0
        price, volume = round(price, self._digits), units / UNITS
        if side > 0:
            self._units += units
            return FlowUpdate(0.0, volume, volume, self._units / UNITS, price, time_ms)
        self._units -= units
        return FlowUpdate(volume, 0.0, -volume, self._units / UNITS, price, time_ms)

    def follow(self, record: TickAccepted) -> None:
        """Go on from what another made of a tick, which it knew as it came and not only as it was told."""
        self._half_points = int((record.bid + record.ask) * self._scale + 0.5)
        if record.flow_seq:
            self._day_ends_ms = record.time_ms - record.time_ms % DAY_MS + DAY_MS
            self._units = round(record.cumulative_delta * UNITS)
            self._side = 1 if record.ask_volume else -1

    def measure_by(self, digits: int, last: Tick | None) -> None:
        """Prices have other digits from now on; what was summed up stays."""
        self._digits, self._scale = digits, 10**digits
        self._half_points = 0 if last is None else int((last.bid + last.ask) * self._scale + 0.5)

    def state(self) -> FlowState:
        return FlowState(self._day_ends_ms // DAY_MS - 1, self._units, self._side, self._half_points)

    def restore(self, state: FlowState) -> None:
        self._day_ends_ms = (state.day + 1) * DAY_MS
        self._units = state.units
        self._side = state.side
        self._half_points = state.half_points

    def _side_of_move(self, tick: Tick) -> int:
        # Whole half points, because the sums of equal mids may differ in their last bit.
        half_points = int((tick.bid + tick.ask) * self._scale + 0.5)
        if half_points != self._half_points:
            if self._half_points:
                self._side = 1 if half_points > self._half_points else -1
            self._half_points = half_points
        return self._side
