"""What the engine decides of signals by rules 2, and the one place that writes it: arms, fills and ends."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from django.db import transaction

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.fault_log import LastingFault
from core.times import moment
from market.store import clock_of_writer_s

from . import record
from .contradictions import WRITTEN_WITHIN_MS
from .judge import ARM_WITHIN_MS, Arm, unfilled
from .ledger.ledger import (
    RESULT,
    Fact,
    LedgerEntry,
    cancellation_payload,
    closure_payload,
    database_clock,
    fill_payload,
    part_of,
    plain,
    seconds_between,
)
from .models import Announcement, Evidence, Reached, Signal, Undelivered
from .record import ARM, CANCEL, FILL, Payload, iso

logger = logging.getLogger(__name__)
clock_is_off = LastingFault(logger, "Signals are not filled while the engine's clock is not the database's")

WRITTEN, CLOSED, UNARMED, TOO_OLD = "written", "closed before", "not armed in time", "armed too long ago"
WITHHELD_UNFILLED = "withheld before its fill was written"
# What is written so much later may be refused by the database.
SOON_S = 0.9 * WRITTEN_WITHIN_MS / 1_000
BY_STAFF, MARKET_CLOSED, INACTIVE = "staff", "market_closed", "inactive"
CAUSES = {
    record.NOT_ARMED: "The engine did not hear of it in time, so it was not filled.",
    record.NO_TICK: "No price came within a minute, so it was not filled.",
    record.BEYOND_TARGET: "The price was beyond its target when it was filled.",
    MARKET_CLOSED: "The market closed before it was filled.",
    record.DEACTIVATED: "Its instrument is no longer offered.",
    INACTIVE: "Its instrument is no longer offered.",
    record.WITHHELD: "The prices of its instrument may not be passed on.",
}


class Arming(NamedTuple):
    """An arm that is not in the ledger yet."""

    asked: str
    number: int
    at_ms: int
    epoch: str
    seq: int
    wait_ms: int
    unsettled_ms: int
    ahead_ms: int = 0

    def as_arm(self) -> Arm:
        return Arm(*self[1:6], unsettled_ms=self.unsettled_ms, ahead_ms=self.ahead_ms)

    @property
    def payload(self) -> dict[str, Any]:
        values = self._asdict()
        return {"for": values.pop("asked"), "at": iso(values.pop("at_ms")), **values}


class Cancelling(NamedTuple):
    cause: str
    at_ms: int
    unsettled_ms: int
    arming: Arming
    """Of what staff asked for, or of this cause, if staff were first."""
    reason: str = ""


class Decision(NamedTuple):
    """In plain values that can wait in the database. To write it again changes nothing."""

    signal: UUID
    arms: tuple[Arming, ...] = ()
    fill: dict[str, Any] | None = None
    cancel: Cancelling | None = None
    close: Payload | None = None
    is_unfilled: bool = False
    """It ends without a fill."""

    def and_then(self, later: Decision) -> Decision:
        return Decision(
            self.signal,
            tuple(dict.fromkeys((*self.arms, *later.arms))),
            self.fill or later.fill,
            self.cancel or later.cancel,
            self.close or later.close,
            self.is_unfilled or later.is_unfilled,
        )

    @property
    def is_end(self) -> bool:
        return self.close is not None or self.is_unfilled

    @property
    def has_prices(self) -> bool:
        return self.fill is not None or (self.close is not None and self.close["evidence"] is not None)


def note_decisions(decisions: Collection[Decision]) -> None:
    """A later one says more."""
    merged: dict[UUID, Decision] = {}
    for each in decisions:
        merged[each.signal] = merged.get(each.signal, each).and_then(each)
    rows = [
        Undelivered(signal_id=signal, decision=msgspec.to_builtins(merged[signal], str_keys=True))
        for signal in sorted(merged)
    ]
    Undelivered.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["signal"], update_fields=["decision"]
    )


def read_decisions() -> list[Decision]:
    """Those that another engine noted but could no longer carry out."""
    Undelivered.objects.filter(signal__status=Signal.Status.CLOSED).delete()
    return [msgspec.convert(row.decision, Decision) for row in Undelivered.objects.order_by("pk")]


@transaction.atomic
def write_decisions(decisions: Collection[Decision]) -> dict[UUID, str]:
    """What became of each. The ledger takes no arm that is too old; what follows from it is dropped then."""
    wanted = {decision.signal: decision for decision in decisions}
    # All rows before the first event, and always in the same order, as in closing.py.
    rows = Signal.objects.active().filter(pk__in=wanted).order_by("pk").select_related("instrument", "user")
    signals = {signal.pk: signal for signal in rows.select_for_update(of=("self",), no_key=True)}
    entries: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    earlier = LedgerEntry.objects.filter(signal__in=list(signals)).exclude(kind=record.CLOSE)
    for about, payload in earlier.order_by("position").values_list("signal", "payload"):
        entries[about].append(json.loads(payload))
    outcomes = dict.fromkeys(wanted, CLOSED)
    writings = []
    for pk, signal in signals.items():
        writing = Writing(signal, entries[pk], wanted[pk])
        outcomes[pk] = writing.outcome
        if writing.update():
            writings.append(writing)
    if TOO_OLD in outcomes.values() and abs(off_s := clock_of_writer_s() or 0.0) > SOON_S:
        clock_is_off.tell(f"it is {off_s:+,.1f} s from it")
    elif any(each.armings for each in writings):
        clock_is_off.over()
    if writings:
        announce(
            [each.signal for each in writings if each.is_closed_now],
            [row for each in writings for row in (each.fill, each.exit) if row],
            [fact for each in writings for fact in each.facts()],
        )
    Reached.objects.filter(signal__in=[each.signal.pk for each in writings if each.is_closed_now]).delete()
    Undelivered.objects.filter(signal__in=list(signals)).delete()
    return outcomes


class Writing:
    """One decision, as far as the ledger does not have it yet."""

    def __init__(self, signal: Signal, entries: list[dict[str, Any]], decision: Decision) -> None:
        self.signal, self.decision, self.outcome = signal, decision, WRITTEN
        self.is_cancelled_now = self.is_filled_now = self.is_closed_now = False
        self.fill: Evidence | None = None
        self.exit: Evidence | None = None
        recorded = self.recorded = {part_of(ARM, each): each for each in entries if each["kind"] == ARM}
        self.armings = [each for each in decision.arms if part_of(ARM, each.payload) not in recorded]
        self.now, publish = database_clock(), entries[0]
        is_same = all(
            recorded.get(part_of(ARM, p := each.payload), p)["at"] == p["at"] for each in decision.arms
        )
        is_late = seconds_between(publish["written"], self.now) > ARM_WITHIN_MS / 1000
        if any((each.asked, each.number) == (FILL, 1) for each in self.armings) and is_late:
            self._end_unarmed()
        elif not is_same or any(self._is_old(each.at_ms) for each in self.armings):
            self.outcome = TOO_OLD

    def _is_old(self, at_ms: int) -> bool:
        return not self.signal.is_demo and abs(seconds_between(iso(at_ms), self.now)) > SOON_S

    def _end_unarmed(self) -> None:
        self.outcome = UNARMED
        first = self.armings[0]
        arming = first._replace(asked=CANCEL, number=1)
        at_ms = record.ms_of(self.now)
        self.armings = []
        cancelling = Cancelling(record.NOT_ARMED, at_ms, first.unsettled_ms, arming)
        self.decision = Decision(self.signal.pk, cancel=cancelling, is_unfilled=True)

    def update(self) -> bool:
        """Update the signal's row; False if there is nothing to write."""
        if self.outcome == TOO_OLD:
            return False
        signal, decision, own = self.signal, self.decision, Signal.objects.active().filter(pk=self.signal.pk)
        if decision.fill is not None and signal.filled_at is None:
            self.fill = evidence_row(signal, Evidence.Kind.FILL, decision.fill["evidence"])
            signal.fill_price, signal.filled_at = Decimal(decision.fill["fill_price"]), self.fill.at
            own.filter(filled_at=None).update(fill_price=signal.fill_price, filled_at=signal.filled_at)
        if decision.cancel is not None:
            self._cancel(decision.cancel)
        if decision.close is not None or decision.is_unfilled:
            at = plain(signal.cancelled_at or signal.published_at)
            self._close(decision.close or unfilled(signal.entry, at))
            values = {name: getattr(signal, name) for name in ("status", *RESULT)}
            self.is_closed_now = bool(own.update(**values))
        return bool(self.armings or self.fill or self.is_cancelled_now or self.is_closed_now)

    def _cancel(self, cancelling: Cancelling) -> None:
        signal = self.signal
        if signal.cancel_reason:
            if (
                cancelling.cause in record.DERIVED
                and part_of(ARM, cancelling.arming.payload) not in self.recorded
            ):
                self.armings.append(cancelling.arming)
            elif cancelling.cause in record.AT_LAST and self.decision.close is not None:
                # What staff asked for waits for a tick, and this does not.
                self.armings = [cancelling.arming._replace(asked=cancelling.cause, number=1)]
            return
        signal.cancel_reason = (cancelling.reason or CAUSES[cancelling.cause])[:200]
        # What follows without an arm may have waited for the database.
        at_ms = record.ms_of(self.now) if self._is_old(cancelling.at_ms) else cancelling.at_ms
        signal.cancelled_at = max(moment(at_ms), signal.published_at)
        own = Signal.objects.active().filter(pk=signal.pk, cancel_reason="")
        self.is_cancelled_now = bool(
            own.update(cancel_reason=signal.cancel_reason, cancelled_at=signal.cancelled_at)
        )

    def _close(self, close: Payload) -> None:
        signal, evidence = self.signal, close["evidence"]
        signal.status = Signal.Status.CLOSED
        columns = {field.name: field for field in Signal._meta.concrete_fields}
        for name in RESULT:
            setattr(signal, name, columns[name].to_python(close[name]))
        cancelling = self.decision.cancel
        if cancelling is not None and cancelling.cause in record.AT_LAST:
            by_this = self.is_cancelled_now
            signal.closed_at = signal.cancelled_at if by_this else moment(cancelling.arming.at_ms)
        self.exit = None if evidence is None else evidence_row(signal, Evidence.Kind.EXIT, evidence)

    def facts(self) -> Iterator[Fact]:
        pk, kinds = self.signal.pk, LedgerEntry.Kind
        arms = {each: Fact(kinds.ARM, pk, each.payload) for each in self.armings}
        yield from (fact for each, fact in arms.items() if each.asked == FILL)
        if self.fill is not None:
            yield Fact(kinds.FILL, pk, fill_payload(self.signal, self.fill))
        if self.is_cancelled_now and (cancelling := self.decision.cancel) is not None:
            yield cancel_fact(self.signal, cancelling.cause, cancelling.unsettled_ms)
        yield from (fact for each, fact in arms.items() if each.asked != FILL)
        if self.is_closed_now:
            yield close_fact(self.signal, self.exit, rules=record.RULES)


def close_fact(signal: Signal, exit_: Evidence | None, **kept: Any) -> Fact:
    # Staff may change the instrument later; the ledger keeps what the result was computed with.
    measured = {"pip_size": plain(signal.instrument.pip_size)} | kept
    return Fact(LedgerEntry.Kind.CLOSE, signal.pk, closure_payload(signal, exit_) | measured)


def cancel_fact(signal: Signal, cause: str, unsettled_ms: int = 0) -> Fact:
    kept = {"cause": cause, "unsettled_ms": unsettled_ms}
    return Fact(LedgerEntry.Kind.CANCEL, signal.pk, cancellation_payload(signal) | kept)


def evidence_row(signal: Signal, kind: str, shown: dict[str, Any]) -> Evidence:
    columns = {field.name: field for field in Evidence._meta.concrete_fields}
    return Evidence(
        signal=signal,
        kind=kind,
        **{name: columns[name].to_python(value) for name, value in shown.items()},
    )


def announce(closed: Iterable[Signal], shown: Iterable[Evidence], facts: Sequence[Fact]) -> None:
    """After the signals' rows, of which no other writer may wait for one."""
    announcements = []
    for signal in closed:
        by_hand = signal.close_reason == Signal.CloseReason.MANUAL
        event = ControlEvent.objects.publish(
            EventKind.SIGNAL_CLOSED,
            by=signal.user.get_username() if by_hand else "",
            signal=str(signal.pk),
            reason=signal.close_reason,
        )
        announcements.append(
            Announcement(position=event.position, signal=signal, kind=Announcement.Kind.CLOSED)
        )
    if not announcements:
        ControlEvent.objects.take_turn()
    # These rows lock nothing that the transaction does not hold already.
    Announcement.objects.bulk_create(announcements)
    Evidence.objects.bulk_create(shown)
    LedgerEntry.objects.append(facts)
