"""Whether the results of a few signals hold: against their evidence, and against their ledger entries."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from signals_feed.contradictions import contradictions
from signals_feed.models import Evidence, Signal

from .ledger import LedgerEntry
from .verify import CurrentRows, fault_of, record_of


class ResultCheck(NamedTuple):
    fault: str
    """What does not hold, and why; empty if all does."""
    has_evidence: bool
    """Signals of the first version have none."""

    @property
    def state(self) -> str:
        if self.fault:
            return "altered"
        return "verified" if self.has_evidence else "unproven"


def check_signals(signals: Sequence[Signal]) -> dict[UUID, ResultCheck]:
    """Computes each result again. Of active signals only what is known of them already is checked."""
    found = LedgerEntry.objects.filter(signal__in=[signal.pk for signal in signals]).order_by("position")
    entries: dict[UUID, list[LedgerEntry]] = defaultdict(list)
    for entry in found:
        entries[entry.signal].append(entry)
    rows = CurrentRows([entry for own in entries.values() for entry in own])
    return {signal.pk: check_signal(signal, entries[signal.pk], rows) for signal in signals}


def check_signal(signal: Signal, entries: Sequence[LedgerEntry], rows: CurrentRows) -> ResultCheck:
    kinds = Evidence.Kind.ENTRY, Evidence.Kind.EXIT
    entry, exit_ = (rows.evidence.get((signal.pk, kind)) for kind in kinds)
    is_closed = signal.status == Signal.Status.CLOSED
    has_evidence = entry is not None and (exit_ is not None or not is_closed)
    fault = next(filter(None, (fault_of(each, rows) for each in entries)), "")
    fault = fault or missing_entry(signal, entries)
    if not fault and (wrong := contradictions(record_of(signal, entries, rows))):
        fault = f"Signal {signal.pk} does not hold: {'; '.join(wrong)}."
    return ResultCheck(fault, has_evidence)


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


def pip_size_of(signal: Signal, entries: Sequence[LedgerEntry]) -> Decimal:
    """The one the result was computed with; for active and very old signals the instrument's."""
    for each in entries:
        if each.kind == LedgerEntry.Kind.CLOSE:
            return Decimal(json.loads(each.payload).get("pip_size", signal.instrument.pip_size))
    return signal.instrument.pip_size
