"""The order flow of the last hour, minute by minute, and whether buyers or sellers pressed harder in it."""

from collections import deque
from collections.abc import Iterable, Mapping

from analysis.answer import Finding, OrderFlowEvidence, WindowDelta
from analysis.facts import Facts, FlowFact, FlowWindow
from core.times import MINUTE_MS, iso_ms
from market.prices import TIMEFRAMES, AnyRecord, SeriesBegan, TickAccepted, interval_start

WINDOWS = (5, 15, 60)


class FlowMinute:
    __slots__ = ("ask_volume", "bid_volume", "count", "opened_ms")

    def __init__(self, opened_ms: int) -> None:
        self.opened_ms = opened_ms
        self.bid_volume = self.ask_volume = 0.0
        self.count = 0


class Flow:
    """The order flow of one instrument."""

    __slots__ = ("cumulative_delta", "last_ms", "minutes", "since_ms")

    def __init__(self, since_ms: int) -> None:
        self.minutes: deque[FlowMinute] = deque(maxlen=max(WINDOWS))
        self.cumulative_delta = 0.0
        self.since_ms = self.last_ms = since_ms

    def take(self, record: TickAccepted) -> None:
        minute = self.minutes[-1] if self.minutes else None
        if minute is None or record.time_ms >= minute.opened_ms + MINUTE_MS:
            minute = FlowMinute(interval_start(record.time_ms, MINUTE_MS))
            self.minutes.append(minute)
        minute.bid_volume += record.bid_volume
        minute.ask_volume += record.ask_volume
        minute.count += 1
        self.cumulative_delta, self.last_ms = record.cumulative_delta, record.time_ms

    def fact(self, now_ms: int, *, has_sides: bool) -> FlowFact:
        windows = tuple(self._window(minutes, now_ms) for minutes in WINDOWS)
        is_todays = self.last_ms >= interval_start(now_ms, TIMEFRAMES["1d"])
        cumulative_delta = self.cumulative_delta if is_todays else None
        # A tick that was heard counts, even if its source's clock runs a little ahead of ours.
        since_ms, last_ms = min(self.since_ms, now_ms), min(self.last_ms, now_ms)
        return FlowFact(windows, cumulative_delta, has_sides, since_ms, last_ms)

    def _window(self, minutes: int, now_ms: int) -> FlowWindow:
        """Sums whole minutes, including the present one."""
        since_ms = interval_start(now_ms, MINUTE_MS) - (minutes - 1) * MINUTE_MS
        inside = [minute for minute in self.minutes if minute.opened_ms >= since_ms]
        return FlowWindow(
            minutes,
            sum(minute.bid_volume for minute in inside),
            sum(minute.ask_volume for minute in inside),
            sum(minute.count for minute in inside),
        )


class Flows:
    """The order flow of all instruments, as this process heard it."""

    def __init__(self) -> None:
        self._flows: dict[str, Flow] = {}

    def hear(self, records: Iterable[AnyRecord]) -> None:
        """Called for every tick, so it only adds up."""
        for record in records:
            if type(record) is TickAccepted and record.flow_seq:
                flow = self._flows.get(record.symbol)
                if flow is None:
                    flow = self._flows[record.symbol] = Flow(record.time_ms)
                flow.take(record)
            elif type(record) is SeriesBegan:
                # Earlier trades belong to a series of another kind.
                self._flows.pop(record.symbol, None)

    def keep(self, symbol: str, records: Iterable[AnyRecord], came_ms: object) -> None:
        """What nobody wanted when it came."""
        self.hear(records)

    def begin(self, epoch: str, checkpoints: Mapping[str, object]) -> None:
        """Starts again: records may have been missed, and part of an hour would look like a whole one."""
        self.clear()

    def clear(self) -> None:
        self._flows.clear()

    def of(self, symbol: str, now_ms: int, *, has_sides: bool) -> FlowFact | None:
        flow = self._flows.get(symbol)
        return None if flow is None else flow.fact(now_ms, has_sides=has_sides)


WINDOW_WEIGHTS = {5: 0.2, 15: 0.3, 60: 0.5}
"""By the length of the window in minutes."""

# A window with this many ticks counts half: with few ticks, a single one could change the sign.
COUNTS_HALF_AT = 20

# The tick rule guesses sides from price moves, so it says less and partly repeats the trend.
TRUST_IN_TICK_RULE = 0.7
DECIMALS = 8


def weigh_order_flow(facts: Facts) -> Finding:
    flow = facts.flow
    if flow is None or not any(window.count for window in flow.windows):
        return Finding("No order flow in the last hour.")
    trust = 1.0 if flow.has_sides else TRUST_IN_TICK_RULE
    score = trust * sum(WINDOW_WEIGHTS.get(window.minutes, 0.0) * pressure(window) for window in flow.windows)
    windows = [
        WindowDelta(
            each.minutes,
            round(each.bid_volume, DECIMALS),
            round(each.ask_volume, DECIMALS),
            round(each.ask_volume - each.bid_volume, DECIMALS),
            each.count,
        )
        for each in flow.windows
    ]
    evidence = OrderFlowEvidence(
        "trades" if flow.has_sides else "tick_rule",
        flow.cumulative_delta,
        iso_ms(flow.since_ms),
        windows,
    )
    return Finding(describe_order_flow(flow, windows[-1], facts.at_ms), score, evidence)


def pressure(window: FlowWindow) -> float:
    """From -1 (only sellers) to 1 (only buyers)."""
    total = window.ask_volume + window.bid_volume
    if total <= 0:
        return 0.0
    share = (window.ask_volume - window.bid_volume) / total
    return share * window.count / (window.count + COUNTS_HALF_AT)


def describe_order_flow(flow: FlowFact, longest: WindowDelta, at_ms: int) -> str:
    heard = min(longest.minutes, 1 + (at_ms - flow.since_ms) // MINUTE_MS)
    span = "minute" if heard == 1 else f"{heard} minutes"
    if longest.delta == 0:
        lead = "Buyers and sellers were balanced"
    else:
        lead = f"{'Buyers' if longest.delta > 0 else 'Sellers'} dominated"
    estimated = "" if flow.has_sides else ", estimated by the tick rule"
    delta = f"{longest.delta:+g}".replace("-", "\N{MINUS SIGN}")
    return f"{lead} over the last {span} (delta {delta}{estimated})."
