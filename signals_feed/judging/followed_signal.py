"""A signal of rules 2 as the engine follows it: the judge's own steps, taken tick by tick as they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from uuid import UUID

from signals_feed import record
from signals_feed.decisions import Arming, Cancelling, Decision
from signals_feed.exits import CANCELLED, CURRENT, Exit, Tick
from signals_feed.judge import Case, Walk
from signals_feed.record import CANCEL, CLOSE_REQUEST, FILL, Item, Payload

TakeSnapshot = Callable[[str, int, int], Arming]
"""Of what an arm is for, its number, and how far the clock was ahead when it was armed before."""


class Followed:
    """`entries` are the payloads of its ledger entries so far."""

    def __init__(self, id_: UUID, symbol: str, entries: Sequence[Payload], snapshot: TakeSnapshot) -> None:
        self.id, self.symbol, self._snapshot = id_, symbol, snapshot
        self.walk: Walk | None = None
        self.unwritten: tuple[Arming, ...] = ()
        """Until these are in the ledger, what comes is only kept: it is judged once they are."""
        self.kept: list[Item] = []
        self.is_over = False
        """An end was decided."""
        self.is_at_end = False
        """It has expired, and ends at the next settled tick."""
        self.stale: set[str] = set()
        """What was armed in another numbering, by an engine whose ticks this one does not have."""
        self.read(entries)

    def read(self, entries: Sequence[Payload]) -> None:
        """What the ledger says by now."""
        self.case = Case(entries)
        self.is_requested = any(entry["kind"] == CLOSE_REQUEST for entry in entries)
        fill = next((entry for entry in entries if entry["kind"] == FILL), None)
        if (before := self.walk) is not None:
            self.walk = Walk(self.case, before.fill)
            self.walk.seen, self.walk.last, self.walk.others = before.seen, before.last, before.others
        elif fill is not None:
            self.walk = Walk(self.case, record.tick_of(fill["evidence"]))

    @property
    def is_waiting(self) -> bool:
        """For a fill, or for the tick of an end that was asked for: every tick has to be looked at."""
        return self.walk is None or self.is_at_end or self.is_requested or bool(self.case.cause)

    def inherit(self, epoch: str) -> None:
        """Another engine followed it until now."""
        arms = self.case.arms.items()
        self.stale = {asked for asked, each in arms if each and each[-1].epoch != epoch}

    @property
    def lacking(self) -> list[str]:
        """What is to be armed."""
        case, found = self.case, []
        if self.walk is None and not case.cause:
            found.append(FILL)
        if case.cause and case.cause not in record.DERIVED:
            found.append(CANCEL)
        if self.is_requested:
            found.append(CLOSE_REQUEST)
        return [each for each in found if not case.arms[each] or each in self.stale]

    def arm(self, asked: Sequence[str]) -> Decision:
        self.unwritten = tuple(self._arming(each) for each in asked)
        # Before its fill, a cancellation ends it at its arm, and both become visible together.
        return Decision(self.id, self.unwritten, is_unfilled=self.walk is None and CANCEL in asked)

    def armed(self, *, are_written: bool) -> Decision | None:
        """Go on with what was kept; what was armed may have been too late for the ledger."""
        armings, self.unwritten = self.unwritten, ()
        kept, self.kept = self.kept, []
        for each in armings if are_written else ():
            arms = self.case.arms[each.asked]
            self.stale.discard(each.asked)
            if len(arms) < each.number:
                arms.append(each.as_arm())
        if self.walk is None and self.case.arms[CANCEL]:
            self.is_over = True
            return Decision(self.id, is_unfilled=True)
        decision: Decision | None = None
        for item in kept:
            if found := self.take(item):
                decision = found if decision is None else decision.and_then(found)
        return decision

    def expected(self) -> Decision | None:
        """What is decided if the ledger takes the arms; None if nothing follows from them yet."""
        if not self.unwritten or not self.kept:
            return None
        likely = copy(self)
        likely.case, likely.stale = copy(self.case), set(self.stale)
        likely.case.arms = {asked: list(arms) for asked, arms in self.case.arms.items()}
        if self.walk is not None:
            likely.walk = copy(self.walk)
            likely.walk.case, likely.walk.seen = likely.case, list(self.walk.seen)
        decision = likely.armed(are_written=True)
        return None if decision is None else Decision(self.id, self.unwritten).and_then(decision)

    def take(self, item: Item) -> Decision | None:
        """What the tick or the minute decides."""
        if self.is_over:
            return None
        if self.unwritten:
            self.kept.append(item)
            return None
        if self.walk is None:
            return self._fill(item) if isinstance(item, Tick) else None
        if not self.walk.follows(item):
            return None
        exit_ = self.walk.exit_at(item)
        # Only the furthest count.
        self.walk.seen = [max(self.walk.seen), min(self.walk.seen)]
        return None if exit_ is None else self._end(self.walk, item, exit_)

    def _fill(self, tick: Tick) -> Decision | None:
        arms = self.case.arms[FILL]
        if not arms or not arms[-1].makes_due(tick):
            return None
        if tick.accepted_ms > arms[-1].fills_by_ms + tick.unsettled_ms:
            return self.cancel(record.NO_TICK, tick.accepted_ms, tick.unsettled_ms)
        self.walk = walk = Walk(self.case, tick)
        evidence = record.evidence_of(tick, record.TICK, FILL)
        filled = Decision(self.id, fill={"fill_price": record.plain(walk.tradable), "evidence": evidence})
        exit_ = walk.exit_at(tick)
        return filled if exit_ is None else filled.and_then(self._end(walk, tick, exit_))

    def _end(self, walk: Walk, item: Item, exit_: Exit) -> Decision:
        self.is_over = True
        decision = Decision(self.id, close=walk.close(item, exit_))
        if exit_.reason == CANCELLED and not self.case.arms[CANCEL] and isinstance(item, Tick):
            decision = decision._replace(
                cancel=self._cancelling(record.BEYOND_TARGET, item.accepted_ms, item.unsettled_ms)
            )
        return decision

    def cancel(self, cause: str, at_ms: int, unsettled_ms: int) -> Decision:
        """Before its fill."""
        self.is_over = True
        cancelling = self._cancelling(cause, at_ms, unsettled_ms)
        arms = () if cause in record.DERIVED else (cancelling.arming,)
        return Decision(self.id, arms, cancel=cancelling, is_unfilled=True)

    def end_at_last(self, cause: str, at_ms: int, reason: str, last: Tick | None) -> Decision:
        """By the last price before now, or that of its fill if no later one may be shown."""
        arming, arms = self._arming(CANCEL), self.case.arms[CANCEL]
        cancelling = Cancelling(cause, at_ms, arming.unsettled_ms, arming, reason)
        decision = Decision(self.id, () if arms else (arming,), cancel=cancelling)
        if self.walk is None:
            return decision._replace(is_unfilled=True)
        walk = Walk(self.case, self.walk.fill) if cause == record.WITHHELD else self.walk
        if last is not None and cause != record.WITHHELD:
            walk.last = last
        elif walk.last.epoch == walk.fill.epoch and walk.last.seq == walk.fill.seq:
            # Its time may be that of a later quote, which this engine did not see.
            walk.last = walk.fill
        exit_ = Exit(walk.exit_side(walk.last), CANCELLED, CURRENT)
        return decision._replace(close=walk.close(walk.last, exit_))

    def cancel_at_next(self, cause: str, at_ms: int, unsettled_ms: int) -> Decision:
        """At the first settled tick that comes, whenever that is."""
        cancelling = self._cancelling(cause, at_ms, unsettled_ms)
        self.unwritten = (cancelling.arming,)
        return Decision(self.id, self.unwritten, cancel=cancelling)

    def _arming(self, asked: str) -> Arming:
        before = [arm.ahead_ms for arms in self.case.arms.values() for arm in arms]
        return self._snapshot(asked, len(self.case.arms[asked]) + 1, before[-1] if before else 0)

    def _cancelling(self, cause: str, at_ms: int, unsettled_ms: int) -> Cancelling:
        return Cancelling(cause, at_ms, unsettled_ms, self._arming(CANCEL))

    def has_run_out(self, at_ms: int, unsettled_ms: int) -> bool:
        """Whether its time to be filled is over."""
        arms = self.case.arms[FILL]
        if self.walk is not None or self.is_over or self.unwritten or not arms:
            return False
        return at_ms > arms[-1].fills_by_ms + unsettled_ms
