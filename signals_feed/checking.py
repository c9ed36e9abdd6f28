"""Whether the results of a few signals hold: against their evidence, and against their ledger entries."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from signals_feed.contradictions import contradictions
from signals_feed.marks import NO_EVIDENCE, Mark, mark_of
from signals_feed.models import Evidence, Signal

from .ledger.ledger import LedgerEntry, Payload
from .ledger.verify import CurrentRows, fault_of, record_of


class ResultCheck(NamedTuple):
    fault: str
    """What does not hold, and why; empty if all does."""
    mark: Mark | None
    """None as long as no price has decided anything."""

    @property
    def why_not(self) -> str:
        """Why it is not verified."""
        return self.fault or (NO_EVIDENCE if self.mark == Mark.NOT_VERIFIED else "")


def check_signals(signals: Sequence[Signal]) -> dict[UUID, ResultCheck]:
    """Computes each result again. Of active signals only what is known of them already is checked."""
    found = LedgerEntry.objects.filter(signal__in=[signal.pk for signal in signals]).order_by("position")
    entries: dict[UUID, list[LedgerEntry]] = defaultdict(list)
    for entry in found:
        entries[entry.signal].append(entry)
    rows = CurrentRows([entry for own in entries.values() for entry in own])
    return {signal.pk: check_signal(signal, entries[signal.pk], rows) for signal in signals}


def check_signal(signal: Signal, entries: Sequence[LedgerEntry], rows: CurrentRows) -> ResultCheck:
    fault = next(filter(None, (fault_of(each, rows) for each in entries)), "")
    fault = fault or missing_entry(signal, entries)
    if not fault and (wrong := contradictions(record_of(signal, entries, rows))):
        fault = f"Signal {signal.pk} does not hold: {'; '.join(wrong)}."
    due = kinds_due(signal)
    decisions = [found for kind in due if (found := rows.evidence.get((signal.pk, kind))) is not None]
    why_not = fault or (NO_EVIDENCE if len(decisions) < len(due) else "")
    is_demo = any(map(rows.is_demo, entries[:1]))
    return ResultCheck(fault, mark_of(why_not, decisions, is_demo=is_demo))


def kinds_due(signal: Signal) -> list[str]:
    """Of the evidence of what has been decided by now. Signals of the first version have none."""
    if signal.paid is None:
        return []
    filled = Evidence.Kind.ENTRY if signal.fill_price is None else Evidence.Kind.FILL
    return [filled] if signal.closed_at is None else [filled, Evidence.Kind.EXIT]


def missing_entry(signal: Signal, entries: Iterable[LedgerEntry]) -> str:
    told = {each.kind for each in entries}
    due = {
        LedgerEntry.Kind.PUBLISH: True,
        LedgerEntry.Kind.FILL: signal.filled_at is not None,
        LedgerEntry.Kind.CLOSE: signal.status == Signal.Status.CLOSED,
        LedgerEntry.Kind.CANCEL: signal.cancel_reason != "",
    }
    missing = next((kind for kind, is_due in due.items() if is_due and kind not in told), None)
    return f"The ledger has no {missing} of signal {signal.pk}." if missing else ""


class StoredRecord(NamedTuple):
    payloads: list[Payload]
    entry: Evidence | None
    exit: Evidence | None


def stored_record(signal: Signal) -> StoredRecord:
    entries = list(LedgerEntry.objects.filter(signal=signal.pk).order_by("position"))
    rows = CurrentRows(entries)
    kinds = Evidence.Kind.ENTRY, Evidence.Kind.EXIT
    return StoredRecord(
        record_of(signal, entries, rows), *(rows.evidence.get((signal.pk, kind)) for kind in kinds)
    )


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
