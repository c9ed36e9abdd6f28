"""Whether the results of a few signals hold: against their evidence, and against their ledger entries."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from signals_feed.marks import NO_EVIDENCE, PUBLISHED_LATE, Mark, mark_of
from signals_feed.models import Evidence, Signal

from .ledger.ledger import LedgerEntry, Payload
from .ledger.verify import CurrentRows, fault_of, untold


class ResultCheck(NamedTuple):
    fault: str
    """What does not hold, and why; empty if all does."""
    mark: Mark | None
    """None as long as no price has decided anything."""
    why_not: str = ""
    """Why it is not verified."""
    is_close_requested: bool = False
    """Its publisher asked to close it, and it is still open."""


class Records:
    """Those of a few signals, in the ledger and in the tables."""

    def __init__(self, signals: Collection[UUID]) -> None:
        self.entries: dict[UUID, list[LedgerEntry]] = defaultdict(list)
        for entry in LedgerEntry.objects.filter(signal__in=signals).order_by("position"):
            self.entries[entry.signal].append(entry)
        self.rows = CurrentRows([entry for own in self.entries.values() for entry in own])
        self._lacking = untold(Signal.objects.filter(pk__in=signals))

    def fault(self, signal: UUID) -> str:
        """Why it does not hold; empty if it does."""
        entries = self.entries[signal]
        faults = (fault_of(each, self.rows) for each in entries)
        fault = next(filter(None, faults), "") or self._lacking.get(signal, "")
        # Together with the demo it may just have been removed.
        return self.rows.contradiction(entries) if not fault and signal in self.rows.signals else fault


def check_signals(signals: Sequence[Signal]) -> dict[UUID, ResultCheck]:
    """Judges each again, active ones as far as they have come."""
    records = Records([signal.pk for signal in signals])
    return {each.pk: check_signal(each, records) for each in signals}


def check_signal(signal: Signal, records: Records) -> ResultCheck:
    fault, entries, rows = records.fault(signal.pk), records.entries[signal.pk], records.rows
    due = kinds_due(signal)
    decisions = [found for kind in due if (found := rows.evidence.get((signal.pk, kind))) is not None]
    why_not = fault or (NO_EVIDENCE if len(decisions) < len(due) else "")
    why_not = why_not or (PUBLISHED_LATE if rows.is_late(signal.pk) else "")
    is_demo = any(map(rows.is_demo, entries[:1]))
    asked = signal.closed_at is None and any(each.kind == LedgerEntry.Kind.CLOSE_REQUEST for each in entries)
    return ResultCheck(fault, mark_of(why_not, decisions, is_demo=is_demo), why_not, asked)


def kinds_due(signal: Signal) -> list[str]:
    """Of the evidence of what has been decided by now. Signals of the first version have none."""
    if signal.paid is None:
        return []
    filled = Evidence.Kind.ENTRY if signal.fill_price is None else Evidence.Kind.FILL
    return [filled] if signal.closed_at is None else [filled, Evidence.Kind.EXIT]


class StoredRecord(NamedTuple):
    payloads: list[Payload]
    entry: Evidence | None
    exit: Evidence | None


def stored_record(signal: Signal) -> StoredRecord:
    entries = list(LedgerEntry.objects.filter(signal=signal.pk).order_by("position"))
    rows = CurrentRows(entries)
    kinds = Evidence.Kind.ENTRY, Evidence.Kind.EXIT
    return StoredRecord(rows.record(entries), *(rows.evidence.get((signal.pk, kind)) for kind in kinds))


def close_requested(signals: Collection[UUID]) -> set[UUID]:
    """Those that their publisher asked to close."""
    asked = LedgerEntry.objects.filter(signal__in=signals, kind=LedgerEntry.Kind.CLOSE_REQUEST)
    return set(asked.values_list("signal", flat=True))


def pip_size_of(signal: Signal, entries: Sequence[LedgerEntry]) -> Decimal:
    """The one the result was computed with; for active and very old signals the instrument's."""
    for each in entries:
        if each.kind == LedgerEntry.Kind.CLOSE:
            return Decimal(json.loads(each.payload).get("pip_size", signal.instrument.pip_size))
    return signal.instrument.pip_size
