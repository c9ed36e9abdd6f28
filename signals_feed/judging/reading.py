"""What the watcher reads: active signals with their ledger entries, and minutes that judge them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from core.times import epoch_ms_after
from market.models import EngineState
from signals_feed.closing import Closing, read_minutes
from signals_feed.decisions import Decision
from signals_feed.exits import CANCELLED, EXPIRED, SignalLevels
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.models import Evidence, Reached, Signal, WatchMark
from signals_feed.record import ARM, FILL, RULES, Payload
from signals_feed.rules import Quoted, StoredMinute, StoredMinutes

# No more parameters than SQLite takes in one query.
IN_ONE_QUERY = 500


class Reach(NamedTuple):
    """How far the price went, and by whose prices."""

    high: Decimal
    low: Decimal
    others: str
    """What else than ticks of venues, with a plus between two."""


class SignalToWatch(NamedTuple):
    id: UUID
    symbol: str
    instrument_id: int
    levels: SignalLevels
    entry: Quoted | None
    """The quote it was published at; None for a signal older than this record."""
    record: Sequence[Payload] = ()
    """Its ledger entries, by rules 2."""
    reached: Reach | None = None
    """Before the last checkpoint."""

    @classmethod
    def of(cls, signal: Signal, evidence: Evidence | None, entries: Sequence[Payload]) -> SignalToWatch:
        entry = None if evidence is None else evidence.quote
        ends_at = min(signal.cancelled_at or signal.expires_at, signal.expires_at)
        levels = SignalLevels(
            signal.direction,
            signal.stop_loss,
            signal.take_profit,
            max(0 if entry is None else entry.time_ms, epoch_ms_after(signal.published_at)),
            epoch_ms_after(ends_at),
            CANCELLED if signal.cancel_reason else EXPIRED,
        )
        return cls(signal.pk, signal.instrument.symbol, signal.instrument_id, levels, entry, entries)

    @property
    def ahead_ms(self) -> int:
        """How far the clock was ahead of the one that dates the prices."""
        arms = (each for each in reversed(self.record) if each["kind"] == ARM)
        return next((arm.get("ahead_ms", 0) for arm in arms), 0)

    def with_fill(self, decision: object) -> SignalToWatch:
        """That was decided and is not in the ledger yet."""
        is_filled = any(entry["kind"] == FILL for entry in self.record)
        if not isinstance(decision, Decision) or decision.fill is None or is_filled:
            return self
        return self._replace(record=[*self.record, {"kind": FILL, **decision.fill}])


def read_active(ids: Collection[UUID] | None = None) -> list[SignalToWatch]:
    """All active signals, or those among the given ones."""
    signals = Signal.objects.active().select_related("instrument")
    entries = Evidence.objects.filter(kind=Evidence.Kind.ENTRY, signal__status=Signal.Status.ACTIVE)
    if ids is not None:
        signals, entries = signals.filter(pk__in=ids), entries.filter(signal__in=ids)
    entry_of = {entry.signal_id: entry for entry in entries}
    # The rows first: an entry that is newer than its row is read again later.
    rows = list(signals)
    records = read_records([signal.pk for signal in rows if signal.rules == RULES])
    found = [SignalToWatch.of(signal, entry_of.get(signal.pk), records[signal.pk]) for signal in rows]
    active = Reached.objects.filter(signal__status=Signal.Status.ACTIVE)
    reached = {row.signal_id: Reach(row.high, row.low, row.others) for row in active} if records else {}
    return [each._replace(reached=reached.get(each.id)) for each in found]


def read_records(signals: Sequence[UUID]) -> dict[UUID, list[Payload]]:
    """The ledger entries of signals by rules 2."""
    found: dict[UUID, list[Payload]] = defaultdict(list)
    for begin in range(0, len(signals), IN_ONE_QUERY):
        entries = LedgerEntry.objects.filter(signal__in=signals[begin : begin + IN_ONE_QUERY])
        for signal, payload in entries.order_by("position").values_list("signal", "payload"):
            found[signal].append(json.loads(payload))
    return found


def is_followed() -> bool:
    """Whether an engine that follows rules 2 wrote the last checkpoint. One of the version before moves the
    mark as if it had judged these signals too."""
    followed = WatchMark.objects.values_list("followed", flat=True).first()
    return followed in (None, standing())


def standing() -> str:
    """Where the journal stood at the last checkpoint."""
    return "/".join(map(str, EngineState.objects.values_list("epoch", "position").first() or ()))


def are_armed() -> bool:
    """Whether signals by rules 2 wait for the tick of their fill, or of an end that was asked for."""
    arms = LedgerEntry.objects.filter(signal=OuterRef("pk"), kind=ARM)
    waits = Q(Exists(arms), filled_at=None) | Exists(arms.exclude(part__startswith=f"{FILL}:"))
    return Signal.objects.active().filter(waits, rules=RULES).exists()


def judge_stored(found: Iterable[SignalToWatch], since_ms: int, until_ms: dict[str, int]) -> list[Closing]:
    """Judge by the minutes that opened at `since_ms` or later and were over at the moment given for their
    symbol."""
    by_instrument = defaultdict(list)
    for each in found:
        if not each.record:
            by_instrument[each.instrument_id, each.symbol].append(each)
    closings = []
    for (instrument_id, symbol), own in by_instrument.items():
        first_ms = max(since_ms, min(each.levels.since_ms for each in own))
        minutes = StoredMinutes(read_minutes(instrument_id, first_ms, until_ms[symbol]))
        for each in own:
            if ended := minutes.first_exit(each.levels):
                closings.append(Closing.by_candle(each.id, *ended, seen=None))
    return closings


def read_missed(
    found: Iterable[SignalToWatch], since_ms: int, until_ms: dict[str, int]
) -> dict[str, list[StoredMinute]]:
    """By symbol, the minutes that signals by rules 2 are judged by, between the same moments."""
    spans: dict[tuple[int, str], tuple[int, int]] = {}
    for each in found:
        if each.record:
            key = each.instrument_id, each.symbol
            # By the clock that dates the minutes.
            own_ms = each.levels.since_ms - each.ahead_ms, until_ms[each.symbol] - min(each.ahead_ms, 0)
            first_ms, last_ms = spans.get(key, own_ms)
            spans[key] = min(first_ms, own_ms[0]), max(last_ms, own_ms[1])
    return {
        symbol: read_minutes(instrument_id, max(since_ms, first_ms), last_ms)
        for (instrument_id, symbol), (first_ms, last_ms) in spans.items()
    }
