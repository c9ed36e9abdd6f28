"""The one judge: from the ledger's entries of a signal, and the prices after its publication, the only `fill`
and `close` that it can have. It needs exits.py, record.py and the standard library alone, because those who
check a record run it too.

An `arm` says from where on the engine looks for a tick: that of the fill, of a requested close, or of a
cancellation. So the engine's own order decides, and a later engine finds the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

from . import exits, record
from .exits import CANCELLED, CURRENT, EXPIRED, MANUAL, MINUTE_MS, Exit, Minute, SignalLevels, Tick
from .record import CANCEL, CLOSE, CLOSE_REQUEST, FILL, PUBLISH, Item, Payload, evidence_of, iso, ms_of, plain

FILL_WITHIN_MS, ARM_WITHIN_MS, FAR_MS = 60_000, 5_000, 10**15
WAITING, OPEN, UNTRADED, CLOSED = "waits for its fill", "is open", "waits for a tradable tick", "has ended"


class Arm(NamedTuple):
    number: int
    at_ms: int
    epoch: str
    seq: int
    wait_ms: int
    written_ms: int = 0
    unsettled_ms: int = 0
    ahead_ms: int = 0
    """How far its clock was ahead of the one that dates the prices."""

    def precedes(self, item: Item) -> bool:
        if isinstance(item, Minute):
            return item.opened_ms > self.at_ms - self.ahead_ms
        return item.seq > self.seq if item.epoch == self.epoch else item.accepted_ms > self.at_ms

    def makes_due(self, tick: Tick) -> bool:
        due_ms = self.at_ms + self.wait_ms
        # A feed that stood still sends what it missed: prices that somebody may have known at the request.
        has_waited = tick.accepted_ms >= due_ms and tick.time_ms >= min(self.at_ms, due_ms) - self.ahead_ms
        return tick.settled and self.precedes(tick) and has_waited

    @property
    def fills_by_ms(self) -> int:
        """The last moment of a fill, but for the time in which prices were unsettled."""
        return self.at_ms + FILL_WITHIN_MS - self.unsettled_ms


class Case:
    """What the entries say that decides."""

    def __init__(self, entries: Sequence[Payload]) -> None:
        of = {entry["kind"]: entry for entry in entries}
        publish, cancel, close = of[PUBLISH], of.get(CANCEL, {}), of.get(CLOSE, {})
        self.is_new = publish.get("rules") == record.RULES
        self.entry, self.published_at = Decimal(publish["entry"]), publish["published_at"]
        self.written_ms = ms_of(publish.get("written", self.published_at))
        self.cause: str = cancel.get("cause", "")
        self.is_untold = self.cause == record.WITHHELD and FILL not in of
        self.cancelled_at: str = cancel.get("cancelled_at", "")
        self.cancel_written_ms = ms_of(cancel["written"]) if "written" in cancel else 0
        self.pip_size = Decimal((publish if self.is_new else close).get("pip_size", 1))
        self.stale_ms, self.unsettled_ms = publish.get("stale_ms", 0), cancel.get("unsettled_ms", 0)
        self.quote = None if publish["evidence"] is None else record.tick_of(publish["evidence"])
        armed = FILL, CLOSE_REQUEST, CANCEL, *record.AT_LAST
        self.arms: dict[str, list[Arm]] = {asked: [] for asked in armed}
        for each in entries:
            if each["kind"] == record.ARM:
                how = each["epoch"], each["seq"], each["wait_ms"], ms_of(each["written"])
                since = each.get("unsettled_ms", 0), each.get("ahead_ms", 0)
                arm = Arm(each["number"], ms_of(each["at"]), *how, *since)
                self.arms[each["for"]].append(arm)
        self.requested, ends_at, ending = MANUAL, publish["expires_at"], EXPIRED
        if not self.is_new and cancel:
            ends_at, ending = min(ends_at, self.cancelled_at), CANCELLED
        prices = Decimal(publish["stop_loss"]), Decimal(publish["take_profit"])
        times = ms_of(self.published_at), ms_of(ends_at)
        self.levels = SignalLevels(publish["direction"], *prices, *times, ending)
        if not self.is_new and close.get("evidence"):
            self._end_as_said(close, publish["expires_at"])

    def _end_as_said(self, close: Payload, expires_at: str) -> None:
        """By the rules of before, the service says at which tick a signal ends by hand or by time."""
        shown, reason = close["evidence"], close["close_reason"]
        earliest = {MANUAL: "", EXPIRED: expires_at, CANCELLED: self.cancelled_at or "~"}
        if shown["rule"] == CURRENT and close["closed_at"] >= earliest.get(reason, "~"):
            self.requested = reason
            self.arms[CLOSE_REQUEST] = [Arm(1, FAR_MS, shown["epoch"], shown["seq"] - 1, -FAR_MS)]

    def due(self, tick: Tick) -> str:
        """The reason of the end that was asked for, if it is at this tick."""
        asked = (self.arms[CLOSE_REQUEST], self.requested), (self.arms[CANCEL], CANCELLED)
        return next((reason for arms, reason in asked if arms and arms[-1].makes_due(tick)), "")

    def why(self, derived: str) -> str:
        """The cause of a cancellation: what was armed, or else what follows."""
        return self.cause if not self.is_new or self.arms[CANCEL] else derived

    @property
    def at_last(self) -> tuple[str, list[Arm]]:
        """Why it ends at the last price before an arm, if it does, and the arms."""
        cause = next((each for each in record.AT_LAST if self.arms[each]), self.cause)
        return cause, self.arms.get(cause) or self.arms[CANCEL] if cause in record.AT_LAST else []

    def find_fill(self, items: Iterator[Item]) -> Tick | str:
        """The tick, or why there is none, or WAITING."""
        arms, cancels = self.arms[FILL], self.arms[CANCEL]
        # Any other cause waits for the engine to arm it.
        is_derived = self.cause in record.DERIVED
        cancelled_ms = ms_of(self.cancelled_at) if is_derived else 0
        first_ms = arms[0].written_ms if arms else self.cancel_written_ms if is_derived else 0
        is_late = first_ms > self.written_ms + ARM_WITHIN_MS
        if is_late or not arms:
            return self.cause if cancels else record.NOT_ARMED if is_late else WAITING
        last_ms = arms[-1].fills_by_ms
        for tick in items:
            if isinstance(tick, Tick) and arms[-1].precedes(tick):
                if cancels and cancels[0].precedes(tick):
                    return self.cause
                if arms[-1].makes_due(tick):
                    if self.is_untold and cancels and cancels[0].at_ms <= tick.accepted_ms + ARM_WITHIN_MS:
                        return self.cause  # Its prices were withheld before its fill was told.
                    return tick if tick.accepted_ms <= last_ms + tick.unsettled_ms else record.NO_TICK
        is_late = cancelled_ms > last_ms + self.unsettled_ms
        return self.cause if cancels else record.NO_TICK if is_late else WAITING


class Walk:
    """From the fill to the end."""

    def __init__(self, case: Case, fill: Tick) -> None:
        self.case, self.levels, self.fill, self.last = case, case.levels, fill, fill
        if case.is_new:
            # From here on the clock counts that dates the prices.
            ahead_ms = next((arm.ahead_ms for arm in reversed(case.arms[FILL])), 0)
            ends_ms = case.levels.ends_ms - ahead_ms
            self.levels = case.levels._replace(since_ms=fill.time_ms, ends_ms=ends_ms)
        self.is_buy = self.levels.is_buy
        self.tradable = fill.ask if self.is_buy else fill.bid
        self.seen = [self.exit_side(fill)]
        self.others = frozenset({fill.feed} if case.is_new else ()) - {*record.VENUES}
        """What else than ticks of venues it was judged by."""

    def exit_side(self, tick: Tick) -> Decimal:
        return exits.exit_price(self.levels.direction, tick.bid, tick.ask)

    def follows(self, item: Item) -> bool:
        if isinstance(item, Minute):
            return item.opened_ms >= self.levels.since_ms
        fill, is_numbered = self.fill, bool(self.fill.seq) and item.epoch == self.fill.epoch
        is_later = item.time_ms >= fill.time_ms and item.accepted_ms >= fill.accepted_ms
        if self.case.is_new:
            return is_later and (item.seq > fill.seq or not is_numbered)
        # By hand it may end at the very quote of its publication.
        return (item.seq > fill.seq if is_numbered else is_later) or bool(self.case.due(item))

    def exit_at(self, item: Item) -> Exit | None:
        feed = item.feed if isinstance(item, Tick) else record.MINUTES
        if self.case.is_new and feed not in record.VENUES:
            self.others |= {feed}
        if isinstance(item, Tick):
            exit_ = self._by_tick(item)
            self.seen.append(self.exit_side(item))
            self.last = item if exit_ is None else self.last
            return exit_
        if self.case.is_new:
            ends = (item.bid_low, item.bid_high) if self.is_buy else (item.ask_low, item.ask_high)
            self.seen += [price for price in ends if price is not None]
        return exits.by_minute(self.levels, item)

    def _by_tick(self, tick: Tick) -> Exit | None:
        """The levels come first, then what was asked for, then the time."""
        price, exit_, reason = self.exit_side(tick), exits.by_tick(self.levels, tick), self.case.due(tick)
        if not self.case.is_new and reason:
            # By the rules of before it was closed at once, whatever the engine was about to find.
            return Exit(price, reason, CURRENT)
        if tick is self.fill and not exits.is_stopped(self.levels, price):
            paid = exits.paid_entry(self.levels.direction, self.case.entry, self.tradable)
            # Its exit side is never nearer to the target than what was paid.
            return Exit(price, CANCELLED, CURRENT) if exits.is_at_target(self.levels, paid) else None
        if exit_ is not None and exit_.rule != CURRENT:
            return exit_
        if reason:
            return Exit(price, reason, CURRENT)
        return exit_ if self.case.is_new and tick.settled else None

    def close(self, by: Item, exit_: Exit) -> Payload:
        case, price, direction, target = self.case, exit_.price, self.levels.direction, self.levels.target
        high, low = max(price, *self.seen), min(price, *self.seen)
        # It ends at its target: the publisher got none of what the tick showed beyond it.
        best, worst = (min(high, target), low) if self.is_buy else (max(low, target), high)
        terms = direction, case.entry, self.levels.stop, self.tradable
        reached = {"best_r": exits.in_r(*terms, best), "worst_r": exits.in_r(*terms, worst)}
        figures = exits.result(*terms, price, case.pip_size)._asdict() | reached
        at_ms = by.opened_ms + MINUTE_MS - 1 if isinstance(by, Minute) else by.time_ms
        source = record.FIRST_AFTER_GAP if at_ms - self.last.time_ms > case.stale_ms else record.TICK
        source = record.CANDLE if isinstance(by, Minute) else source
        evidence = evidence_of(by, source, exit_.rule, best=best, worst=worst)
        if isinstance(by, Tick):
            evidence["feed"] = record.feeds_of(by.feed, self.others)
        return {
            "close_price": plain(price),
            "close_reason": exit_.reason,
            "closed_at": max(iso(at_ms), case.published_at),
            "evidence": evidence,
            **{name: plain(figure) for name, figure in figures.items()},
        }


def unfilled(entry: Decimal, at: str) -> Payload:
    """It ends at its entry, with nothing gained or lost."""
    nothing = dict.fromkeys(("pnl", "pnl_percent", "pnl_r"), "0") | {"best_r": None, "worst_r": None}
    close = {"close_price": plain(entry), "close_reason": CANCELLED, "closed_at": at}
    return close | nothing | {"evidence": None}


class Verdict(NamedTuple):
    state: str
    fill: Payload | None = None
    close: Payload | None = None
    """As the ledger writes them, as far as they follow."""
    cause: str = ""


def judge(entries: Sequence[Payload], market: Iterable[Item], until_ms: int) -> Verdict:
    """`market` is every tick in order, and minutes where no ticks are known, up to `until_ms`."""
    case, items = Case(entries), iter(market)
    fill = case.find_fill(items) if case.is_new else case.quote
    if fill == WAITING:
        return Verdict(WAITING)
    if not isinstance(fill, Tick):
        return Verdict(CLOSED, None, unfilled(case.entry, case.cancelled_at), case.why(str(fill)))
    walk, (last_cause, ends) = Walk(case, fill), case.at_last
    filled = {"fill_price": plain(walk.tradable), "evidence": evidence_of(fill, record.TICK, FILL)}
    for item in chain((fill,), items) if case.is_new else items:
        if ends and ends[-1].precedes(item):
            break
        # Of prices that are withheld nobody may be shown a later one.
        is_told = not (ends and last_cause == record.WITHHELD) and walk.follows(item)
        if (item is fill or is_told) and (exit_ := walk.exit_at(item)):
            cause = case.why(record.BEYOND_TARGET) if exit_.reason == CANCELLED else ""
            return Verdict(CLOSED, filled, walk.close(item, exit_), cause)
    if ends:
        exit_ = Exit(walk.exit_side(walk.last), CANCELLED, CURRENT)
        closed_at = case.cancelled_at if last_cause == case.cause else iso(ends[-1].at_ms)
        return Verdict(CLOSED, filled, {**walk.close(walk.last, exit_), "closed_at": closed_at}, case.cause)
    is_over = case.arms[CANCEL] or case.arms[CLOSE_REQUEST] or until_ms >= case.levels.ends_ms
    return Verdict(UNTRADED if is_over else OPEN, filled)
