"""Checks the ledger against itself, against what the tables say now, and by the judge, a few hundred entries
at a time."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When

from core.program import command
from signals_feed.archive_access import DigestOf, archived
from signals_feed.contradictions import UNREADABLE, WRITTEN_WITHIN_MS, contradictions
from signals_feed.models import Announcement, Evidence, Signal
from signals_feed.record import ARCHIVE, ARM, CLOSE, CLOSE_REQUEST, FILL, OWN_TIME, PUBLISH, RULES, ms_of
from transparency.signing import CheckpointCheck

from .guards import missing_triggers
from .ledger import (
    FIRST_PREVIOUS_HASH,
    LedgerEntry,
    LedgerHead,
    Payload,
    cancellation_payload,
    canonical,
    chained,
    closure_payload,
    fill_payload,
    part_of,
    plain,
    publication_payload,
)

# Whether the ledger was written in its order, as far as its own entries show it. By rules 1, the market's
# time counts, which a wrong clock does not move.
DATED_BACK_MS = 3_600_000


class OrderCheck:
    """Takes all payloads in order. It keeps a number for each publisher, and the signals that are open."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        """In order, but published by earlier rules."""
        self._written = ""
        self._begun_at = 0
        """The first publication by the new rules."""
        self._numbers = Counter[int]()
        self._sealed = set[str]()
        """Days of the archive."""
        self._open: dict[str, bool] = {}
        """Of those by the new rules, whether they are the demo's."""

    def fault(self, entry: Payload, is_demo: bool) -> str:
        """Empty if there is none. `is_demo` is for older entries, which do not say it."""
        try:
            return next(self._faults(entry, entry.get("demo", is_demo)), "")
        except UNREADABLE as error:
            return f"cannot be read ({type(error).__name__}: {error})"

    def _faults(self, entry: Payload, is_demo: bool) -> Iterator[str]:
        kind, signal = entry["kind"], entry["signal"]
        if kind == PUBLISH:
            yield from self._misnumbered(entry)
            yield from self._by_old_rules(entry, is_demo)
        if kind == ARCHIVE:
            if entry["day"] in self._sealed:
                yield f"seals {entry['day']} once more"
            self._sealed.add(entry["day"])
        if "written" in entry:
            if entry["written"] < self._written:
                yield f"was written at {entry['written']}, before the one before it"
            self._written = entry["written"]
        elif signal in self._open or kind in (ARM, FILL, CLOSE_REQUEST):
            yield "does not say when it was written"
        if signal in self._open and kind in OWN_TIME and not self._open[signal]:
            own = entry[OWN_TIME[kind]]
            if abs(ms_of(own) - ms_of(entry["written"])) > WRITTEN_WITHIN_MS:
                yield f"is dated {own}, and was written at {entry['written']}"
        if kind == CLOSE:
            self._open.pop(signal, None)

    def _misnumbered(self, entry: Payload) -> Iterator[str]:
        user = entry["user_id"]
        self._numbers[user] += 1
        if entry.get("number", self._numbers[user]) != self._numbers[user]:
            yield f"is number {entry['number']} of its publisher, of whom there are {self._numbers[user]}"

    def _by_old_rules(self, entry: Payload, is_demo: bool) -> Iterator[str]:
        if entry.get("rules") == RULES:
            self._begun_at = self._begun_at or entry["position"]
            self._open[entry["signal"]] = is_demo
            return
        # The demo invents a past that was never quoted.
        if self._begun_at and not is_demo:
            about = f"Entry {entry['position']} ({PUBLISH} of {entry['signal']})"
            begun = f"and entry {self._begun_at} those that had begun"
            self.warnings.append(f"{about} follows earlier rules, {begun}: it counts nowhere.")
        if self._written and not is_demo and _is_dated_back(entry["published_at"], self._written):
            yield f"is dated {entry['published_at']}, and an earlier one was written at {self._written}"


def _is_dated_back(own: str, written: str) -> bool:
    return ms_of(own) < ms_of(written) - DATED_BACK_MS


# No more parameters than SQLite takes in one query.
BATCH = 500


class LedgerVerdict(NamedTuple):
    entries: int
    """How many entries hold."""
    head: str
    fault: str = ""
    """The first that does not hold, and why."""
    warnings: tuple[str, ...] = ()
    """About entries that hold."""


class SealedDays:
    """Days of the archive, as the ledger sealed them and as they are now."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self._digest_of: DigestOf | None = None

    def fault(self, entry: Payload) -> str:
        if self.warnings:
            return ""
        try:
            self._digest_of = self._digest_of or archived.open_digests()
            digest = self._digest_of(entry["day"])
            is_same = digest in ("", entry["manifest_sha256"])
        except OSError as error:
            self.warnings.append(f"The days of the archive are not compared: {str(error).rstrip('.')}.")
            return ""
        except UNREADABLE as error:
            return f"cannot be read ({type(error).__name__}: {error})"
        return "" if is_same else f"seals {entry['day']}, whose manifest in the archive is another one by now"


class Altered(Exception):
    """An entry or a row is not as it was written."""


class NotedHead(NamedTuple):
    """A head that was written down earlier."""

    position: int
    hash: str


def verify(noted: NotedHead | None = None) -> LedgerVerdict:
    """Verify up to the present head; later entries are left for the next time."""
    checked, previous = 0, FIRST_PREVIOUS_HASH
    # Before the head, so that no checkpoint is of later entries.
    checkpoints, order, sealed = CheckpointCheck(), OrderCheck(), SealedDays()
    head = LedgerHead.objects.now()
    try:
        for entries in _batches(head.position):
            rows = CurrentRows(entries)
            for entry in entries:
                _check_chain(entry, checked + 1, previous)
                if noted is not None and noted.position == entry.position and noted.hash != entry.hash:
                    raise Altered(
                        f"Entry {entry.position} is not the one that was noted: the ledger was rewritten."
                    )
                rows.check(entry)
                fault = order.fault(_written(entry), rows.is_demo(entry))
                if not fault and entry.kind == LedgerEntry.Kind.ARCHIVE:
                    fault = sealed.fault(_written(entry))
                _raise_for(f"{name_of(entry)} {fault}." if fault else "")
                _raise_for(checkpoints.add(entry.payload))
                checked, previous = entry.position, entry.hash
            _judge(entries, rows, head.position)
        _check_end(head, checked, previous, noted)
        _raise_for(checkpoints.end())
        _raise_for(next(iter(untold(Signal.objects.order_by("pk"), most=1).values()), ""))
        _check_guards()
    except Altered as altered:
        return LedgerVerdict(checked, previous, str(altered), (*order.warnings, *sealed.warnings))
    return LedgerVerdict(checked, previous, warnings=(*order.warnings, *sealed.warnings))


def _raise_for(fault: str) -> None:
    if fault:
        raise Altered(fault)


def _batches(upto: int) -> Iterator[Sequence[LedgerEntry]]:
    """Read by position, so that only one batch is in memory."""
    last = -(2**62)
    entries = LedgerEntry.objects.filter(position__lte=upto).order_by("position")
    while batch := list(entries.filter(position__gt=last)[:BATCH]):
        yield batch
        last = batch[-1].position


def name_of(entry: LedgerEntry) -> str:
    of = "" if entry.kind == LedgerEntry.Kind.ARCHIVE else f" of {entry.signal}"
    return f"Entry {entry.position} ({entry.kind}{of})"


def _check_chain(entry: LedgerEntry, position: int, previous: str) -> None:
    name = name_of(entry)
    if entry.position != position:
        raise Altered(f"Entry {position} is missing: the next one is {entry.position}.")
    if entry.previous != previous:
        raise Altered(f"{name} does not follow the one before it.")
    if entry.hash != chained(previous, entry.payload):
        raise Altered(f"{name} was altered: its hash is not that of its payload.")
    about = {"position": entry.position, "kind": entry.kind, "signal": str(entry.signal)}
    written = _written(entry)
    is_other = any(written.get(name) != value for name, value in about.items())
    if is_other or entry.part != part_of(entry.kind, written):
        raise Altered(f"{name} was altered: its columns and its payload differ.")
    # Of two members of one name SQLite reads the first, so its triggers judge by another than we do.
    if canonical(written) != entry.payload:
        raise Altered(f"{name} was altered: its payload is not written as the ledger writes.")


def _written(entry: LedgerEntry) -> Payload:
    """Empty if it is no payload of ours, however well it is chained."""
    try:
        written = json.loads(entry.payload)
    except (ValueError, RecursionError):
        return {}
    return written if isinstance(written, dict) else {}


def _judge(batch: Sequence[LedgerEntry], rows: CurrentRows, upto: int) -> None:
    """The signals whose last entry is in the batch, whether they have ended or not."""
    found = LedgerEntry.objects.filter(signal__in=rows.signals, position__lte=upto).order_by("position")
    of: dict[UUID, list[LedgerEntry]] = defaultdict(list)
    for entry in found:
        of[entry.signal].append(entry)
    for entries in of.values():
        if entries[-1].position <= batch[-1].position:
            _raise_for(rows.contradiction(entries))


def _check_end(head: LedgerHead, position: int, hash_: str, noted: NotedHead | None) -> None:
    if head.position > position:
        raise Altered(f"Entry {position + 1} is missing: the ledger ended at {head.position}.")
    if (head.position, head.hash) != (position, hash_):
        raise Altered(f"The head of the ledger was altered: it says {head}, the last entry is {position}.")
    has_more = LedgerEntry.objects.filter(position__gt=position).exists()
    if has_more and LedgerHead.objects.now().position == position:
        raise Altered(
            f"The head of the ledger was altered: it says {position}, and there are entries after it."
        )
    if noted is not None and noted.position > position:
        raise Altered(f"Entry {position + 1} is missing: {noted.position} were noted.")


OWN = Evidence.objects.filter(signal=OuterRef("pk"))
TOLD_END = Announcement.objects.filter(signal=OuterRef("pk"), kind=Announcement.Kind.CLOSED)
DUE = {
    LedgerEntry.Kind.PUBLISH: Q(),
    LedgerEntry.Kind.FILL: ~Q(filled_at=None, fill_price=None) | Exists(OWN.filter(kind=Evidence.Kind.FILL)),
    # The last two alone would keep the engine from ever closing it.
    LedgerEntry.Kind.CLOSE: Q(status=Signal.Status.CLOSED)
    | Exists(OWN.filter(kind=Evidence.Kind.EXIT))
    | Exists(TOLD_END),
    LedgerEntry.Kind.CANCEL: ~Q(cancel_reason=""),
}


def untold(signals: QuerySet[Signal], most: int | None = None) -> dict[UUID, str]:
    """Those of which the table knows something that the ledger does not, and what."""
    entries = LedgerEntry.objects.filter(signal=OuterRef("pk"))
    cases = (
        When(which & ~Exists(entries.filter(kind=kind)), then=Value(kind)) for kind, which in DUE.items()
    )
    lacking = signals.annotate(lacks=Case(*cases, default=Value(""))).exclude(lacks="")
    return {
        pk: f"Signal {pk} is in the table, and the ledger has no {kind} of it."
        for pk, kind in lacking.values_list("pk", "lacks")[:most]
    }


def _check_guards() -> None:
    if missing := missing_triggers():
        raise Altered(
            f"Nothing was altered, but the database would allow it: {', '.join(sorted(missing))} missing, "
            f"disabled or changed. Run `{command('migrate')}` to restore them."
        )


def fault_of(entry: LedgerEntry, rows: CurrentRows) -> str:
    """What of an entry or its signal was altered; empty if both hold. Whether the entries before it do, only
    `verify` knows."""
    try:
        _check_chain(entry, entry.position, entry.previous)
        rows.check(entry)
    except Altered as altered:
        return str(altered)
    return ""


class CurrentRows:
    """The tables' present rows for the signals of a batch."""

    def __init__(self, entries: Sequence[LedgerEntry]) -> None:
        ids = {entry.signal for entry in entries}
        removals = LedgerEntry.objects.filter(signal__in=ids, kind=LedgerEntry.Kind.REMOVE)
        self.signals: dict[UUID, Any] = Signal.objects.with_origin().select_related("instrument").in_bulk(ids)
        self.evidence = {(row.signal_id, row.kind): row for row in Evidence.objects.filter(signal__in=ids)}
        self._removed = set(removals.values_list("signal", flat=True))

    def is_demo(self, entry: LedgerEntry) -> bool:
        """Nothing else is ever removed."""
        signal = self.signals.get(entry.signal)
        return signal is None or signal.is_of_demo

    def is_late(self, pk: UUID) -> bool:
        return pk in self.signals and self.signals[pk].is_late

    def check(self, entry: LedgerEntry) -> None:
        if entry.kind == LedgerEntry.Kind.ARCHIVE:
            return
        signal = self.signals.get(entry.signal)
        name = f"Signal {entry.signal}"
        if entry.signal in self._removed:
            if signal is not None:
                raise Altered(f"{name} is in the table, and entry {entry.position} says that it was removed.")
            if _written(entry).get("demo") is False:
                raise Altered(f"{name} of entry {entry.position} was removed, and is not of the demo.")
            return
        if signal is None:
            raise Altered(f"{name} of entry {entry.position} was deleted.")
        if entry.kind == LedgerEntry.Kind.CLOSE and signal.status != Signal.Status.CLOSED:
            raise Altered(f"{name} was reopened: entry {entry.position} says that it was closed.")
        fill = self.evidence.get((signal.pk, Evidence.Kind.FILL))
        if entry.kind == LedgerEntry.Kind.FILL and fill is not None and signal.filled_at != fill.at:
            raise Altered(f"{name} was altered: filled_at is not the time of its fill.")
        written = _written(entry)
        now = json.loads(canonical(self.payload(entry, signal)))
        if differing := sorted(field for field in now if now[field] != written.get(field)):
            raise Altered(
                f"{name} was altered: {_differences(differing, written, now)} (entry {entry.position})."
            )

    def payload(self, entry: LedgerEntry, signal: Signal) -> Payload:
        """What of the entry's payload the tables know."""
        match entry.kind:
            case LedgerEntry.Kind.PUBLISH:
                known = publication_payload(signal, self.evidence.get((signal.pk, Evidence.Kind.ENTRY)))
                # Older entries do not say it.
                known |= {"demo": signal.is_demo} if '"demo":' in entry.payload else {}
                of_rules = {"rules": signal.rules, "rank_unit": plain(signal.rank_unit)}
                is_new = signal.rules == RULES or '"rules":' in entry.payload
                return known | (of_rules if is_new else {})
            case LedgerEntry.Kind.FILL:
                return fill_payload(signal, self.evidence.get((signal.pk, Evidence.Kind.FILL)))
            case LedgerEntry.Kind.CLOSE:
                return closure_payload(signal, self.evidence.get((signal.pk, Evidence.Kind.EXIT)))
            case LedgerEntry.Kind.CANCEL:
                return cancellation_payload(signal)
            case _:
                return {}

    def record(self, entries: Sequence[LedgerEntry]) -> list[Payload]:
        """The ledger's record of a signal, without what the tables hold themselves."""
        signal = self.signals[entries[0].signal]
        # Results of very old signals do not say with which pip size they were computed.
        pip_size = {"pip_size": plain(signal.instrument.pip_size)}
        return [pip_size | json.loads(each.payload) | self.payload(each, signal) for each in entries]

    def contradiction(self, entries: Sequence[LedgerEntry]) -> str:
        """What the judge finds in it; empty if it holds."""
        wrong = contradictions(self.record(entries))
        return f"Signal {entries[0].signal} does not hold: {'; '.join(wrong)}." if wrong else ""


def _differences(fields: list[str], written: Payload, now: Payload) -> str:
    def short(value: Any) -> str:
        return value if isinstance(value, str) else canonical(value) if value else "nothing"

    return "; ".join(
        f"{field} is {short(now[field])}, it was {short(written.get(field))}" for field in fields
    )
