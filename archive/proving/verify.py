"""Proves a day of the archive: its files, the ledger's head, minutes out of ticks, and results of signals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from archive.folding.parquet import span_of, stored_minutes
from archive.journal import has_pyarrow
from archive.manifest_digests import UNCHANGED, digest_of
from archive.manifests import ArchiveManifest, BadManifest, ManifestFile, decoded_of, manifest_path, parse
from archive.stores import ArchiveStore, NotStored, StoreFault, archive_store
from core.times import epoch_ms, moment, read_iso
from instruments.models import Instrument
from signals_feed.contradictions import contradictions
from signals_feed.exits import Minute, Tick
from signals_feed.ledger_days import LedgerPosition, is_in_ledger, sealed_as
from signals_feed.models import Evidence, Signal
from signals_feed.record import FILL, RULES, Payload, ms_of, tick_of
from signals_feed.result_checks import stored_record
from signals_feed.rules import exact_price

from .files import (
    ArchivedMinute,
    ArchivedTick,
    CheckedFile,
    MinuteFindings,
    NotAsListed,
    compare_database,
    compare_rebuilt,
    first_of,
    is_imported,
    rebuilt,
)

# Signals that were closed on a day, judged again by the ticks of the archive.
Minutes = Mapping[int, ArchivedMinute]


class NotJudged(Exception):
    """A day in between is missing from the archive, or incomplete."""


class Judged(NamedTuple):
    signal: Signal
    fault: str
    """A sentence; empty if the result is the same."""
    note: str = ""


class ArchivedDays(NamedTuple):
    """How the archive is asked, by symbol and day."""

    ticks: Callable[[str, date], list[ArchivedTick]]
    """Raises NotJudged if they are not there, or not all."""
    minutes: Callable[[str, date], Minutes]
    stored: Callable[[str, date], Minutes]
    """What the database has by now."""


def closed_on(day: date) -> list[Signal]:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    closed = Signal.objects.filter(closed_at__gte=start, closed_at__lt=start + timedelta(days=1))
    return list(closed.select_related("instrument").order_by("closed_at", "pk"))


def judge_again(signal: Signal, days: ArchivedDays) -> Judged:
    record, entry, exit_ = stored_record(signal)
    if entry is None or (exit_ is None and signal.rules != RULES):
        raise NotJudged("it is older than evidence")
    if exit_ is not None and exit_.source == Evidence.Source.CANDLE:
        return Judged(signal, *_judge_minute(signal, record, exit_, days))
    return Judged(signal, "; ".join(contradictions(record, _ticks(signal, entry, exit_, days))))


def _ticks(signal: Signal, entry: Evidence, exit_: Evidence | None, days: ArchivedDays) -> Iterator[Tick]:
    """All of them. Rules 1 need only those at which it may have ended: a level is met, or its evidence says
    so."""
    until = exit_.at if exit_ else signal.closed_at or signal.published_at
    last, is_buy = (exit_.epoch, exit_.seq) if exit_ else ("", 0), signal.direction == "buy"
    low, high = sorted((float(signal.stop_loss), float(signal.take_profit)))
    for tick in _archived(signal, min(entry.at, signal.published_at), until, days):
        is_met = not low < (tick.bid if is_buy else tick.ask) < high
        if signal.rules == RULES or is_met or (tick.epoch, tick.seq) == last:
            yield as_judged(tick)


def as_judged(tick: ArchivedTick) -> Tick:
    known = tick.accepted_ms or 0, tick.feed or "", tick.settled is not False, tick.unsettled_ms or 0
    return Tick(exact_price(tick.bid), exact_price(tick.ask), tick.time_ms, tick.epoch, tick.seq, *known)


def _archived(signal: Signal, since: datetime, until: datetime, days: ArchivedDays) -> Iterator[ArchivedTick]:
    day, last = day_of(epoch_ms(since)), day_of(epoch_ms(until))
    while day <= last:
        yield from days.ticks(signal.instrument.symbol, day)
        day += timedelta(days=1)


def day_of(time_ms: int) -> date:
    return datetime.fromtimestamp(time_ms // 1000, UTC).date()


def _judge_minute(
    signal: Signal, record: Sequence[Payload], exit_: Evidence, days: ArchivedDays
) -> tuple[str, str]:
    """A fault, and a note. After an outage a minute may be filled in, or imported, after the night."""
    opened_ms, symbol = epoch_ms(exit_.at), signal.instrument.symbol
    day = day_of(opened_ms)
    row, (filled, note) = days.minutes(symbol, day).get(opened_ms), _filled(signal, record, days)
    if row is not None and not (fault := _judge_row(signal, record, filled, opened_ms, row)):
        return "", note
    stored = days.stored(symbol, day)
    now = stored.get(opened_ms)
    if row is None:
        if not stored:
            raise NotJudged(
                "the minute that closed it came after the night, and the database has it no longer"
            )
        fault = "the minute that closed it is neither in the archive nor in the database"
    if now is None or (row is not None and not is_imported(now)):
        return fault, ""
    if fault_now := _judge_row(signal, record, filled, opened_ms, now):
        return fault if row is not None else fault_now, ""
    return "", "judged by its minute in the database, which was stored after the archive was made"


def _filled(signal: Signal, record: Sequence[Payload], days: ArchivedDays) -> tuple[list[Tick], str]:
    """The ticks up to that of its fill, or this alone with a note."""
    fill = next((tick_of(each["evidence"]) for each in record if each["kind"] == FILL), None)
    if fill is None:
        return [], ""
    try:
        since = min(signal.published_at, moment(fill.time_ms))
        ticks = map(as_judged, _archived(signal, since, moment(fill.time_ms), days))
        return [tick for tick in ticks if tick.accepted_ms <= fill.accepted_ms], ""
    except NotJudged as error:
        return [fill], f"its fill is not judged again: {error}"


def _judge_row(
    signal: Signal,
    record: Sequence[Payload],
    filled: Sequence[Tick],
    opened_ms: int,
    row: ArchivedMinute,
) -> str:
    digits = signal.instrument.digits
    prices = row.open, row.low, row.high, row.ask_low, row.ask_high
    rounded = [None if price is None else exact_price(round(price, digits)) for price in prices]
    minute = Minute(opened_ms, *rounded)
    if row.basis == "mid":
        minute = minute._replace(bid_open=None, bid_low=None, bid_high=None)
    return "; ".join(contradictions(record, [*filled, minute], is_whole=False))


# After a day that has not changed: the night that makes its files, and the one that seals it.
SEALED_WITHIN = timedelta(days=2)


class DayVerdict(NamedTuple):
    day: date
    faults: list[str]
    """Sentences; none where everything holds."""
    notes: list[str]
    """What could not be proved, and why."""
    counts: dict[str, int]


class Proving:
    """One day. The database is read only if it belongs to the archive."""

    def __init__(
        self, store: ArchiveStore, day: date, listed: Collection[str], *, has_database: bool
    ) -> None:
        """`listed` are the files of that day that are there."""
        self._store, self.day, self._has_database = store, day, has_database
        self._listed = [path for path in listed if parse(path).kind != "manifest"]
        self.faults: list[str] = []
        self.notes: list[str] = []
        self.counts = dict.fromkeys(("files", "ticks", "minutes", "signals"), 0)
        self._ticks: dict[tuple[str, date], list[ArchivedTick]] = {}
        self._manifests: dict[date, ArchiveManifest | None] = {}

    def run(self) -> DayVerdict:
        manifest = self._manifest(self.day)
        if manifest is not None:
            self._prove(manifest)
            self._tell_unnamed(manifest)
        elif not self.faults:
            self.faults.append(self._lacks_manifest())
        return DayVerdict(self.day, self.faults, self.notes, self.counts)

    def _prove(self, manifest: ArchiveManifest) -> None:
        checked = {file.path: self._check(file) for file in manifest.files}
        if spans := {hole.symbol for hole in manifest.holes}:
            self.notes.append(f"Ticks are missing of {', '.join(sorted(spans))}: see the manifest.")
        elif not manifest.complete:
            self.notes.append("Candles are missing, which were damaged when this copy was made.")
        if self._has_database:
            self._prove_ledger(manifest)
            self._prove_seal()
        candles = {file.symbol: checked[file.path] for file in manifest.files if file.kind == "candles"}
        for file in manifest.files:
            opened = checked[file.path]
            if opened is not None and file.kind == "ticks":
                self.counts["ticks"] += file.rows
                self._prove_ticks(manifest, file, opened, candles.get(file.symbol))
        for symbol, opened in candles.items():
            if opened is not None and self._has_database:
                self._prove_stored(symbol, opened)
        if self._has_database:
            self._prove_signals()

    def _lacks_manifest(self) -> str:
        if not self._listed:
            is_sealed = self._has_database and sealed_as(str(self.day))
            return f"There is no manifest of {self.day}{', which the ledger sealed' if is_sealed else ''}."
        return (
            f"There are files of {self.day}, and no manifest that names them: {first_of(self._listed)}. If a "
            "run was stopped in the middle, the next `fold_archive` writes it, or removes what is left of a "
            "day that was dropped. Otherwise restore it from a copy: without it these files are not served."
        )

    def _tell_unnamed(self, manifest: ArchiveManifest) -> None:
        if unnamed := sorted(set(self._listed) - {file.path for file in manifest.files}):
            self.notes.append(
                f"Not named by the manifest, so not proved: {first_of(unnamed)}. A run that was stopped in "
                "the middle leaves such files, and the next one names them; what stays may be removed."
            )

    def _check(self, file: ManifestFile) -> CheckedFile | None:
        try:
            opened = CheckedFile(self._store, file)
        except NotStored:
            self.faults.append(f"{file.path} is in the manifest, and not in the archive.")
        except NotAsListed as error:
            self.faults.append(f"{file.path} {error}.")
        except StoreFault:
            # The whole store, and not this file.
            raise
        except OSError as error:
            self.faults.append(f"{file.path} cannot be read: {error.strerror or error}.")
        else:
            self.counts["files"] += 1
            return opened
        return None

    def _prove_ledger(self, manifest: ArchiveManifest) -> None:
        head = manifest.ledger
        if not is_in_ledger(LedgerPosition(head.sequence, head.hash)):
            self.faults.append(
                f"Entry {head.sequence} of the ledger is not the one that ended {self.day}: the ledger or "
                "the manifest was rewritten. `verify_ledger` tells which entry differs."
            )

    def _prove_seal(self) -> None:
        sealed, digest = sealed_as(str(self.day)), digest_of(self._store, self.day)
        if not sealed and self.day + UNCHANGED + SEALED_WITHIN <= datetime.now(UTC).date():
            self.notes.append(
                "The ledger does not seal it yet: something came late, or the nightly work failed."
            )
        if sealed and digest != sealed:
            self.faults.append(
                f"The manifest of {self.day} is not the one that the ledger sealed: the day was altered "
                f"since. The SHA-256 was {sealed}, and is {digest or 'none'}."
            )

    def _prove_ticks(
        self, manifest: ArchiveManifest, file: ManifestFile, ticks: CheckedFile, candles: CheckedFile | None
    ) -> None:
        if candles is None:
            self.notes.append(f"{file.symbol}: no minutes are archived with which its ticks can be compared.")
            return
        facts, end_ms = ticks.facts, epoch_ms(span_of(self.day)[1])
        if len(ticks.about["candle_price"]) > 1:
            self.notes.append(
                f"{file.symbol}: CANDLE_PRICE was changed that day, its minutes are not compared."
            )
            return
        holes = [
            (epoch_ms(read_iso(hole.start)), epoch_ms(read_iso(hole.end)))
            for hole in manifest.holes
            if hole.symbol == file.symbol
        ]
        made = rebuilt(ticks.ticks(), facts, end_ms)
        knows_before = facts.before is not None
        found = compare_rebuilt(made, candles.minutes(), holes, knows_before=knows_before)
        self._tell(file.symbol, "Minutes made of its ticks differ from those archived", found)

    def _prove_stored(self, symbol: str, candles: CheckedFile) -> None:
        now = minutes_now(symbol, self.day)
        if not now:
            self.notes.append(f"{symbol}: the database no longer has its minutes of that day.")
            return
        self._tell(
            symbol, "Stored minutes differ from those archived", compare_database(candles.minutes(), now)
        )

    def _tell(self, symbol: str, says: str, found: MinuteFindings) -> None:
        self.counts["minutes"] += found.equal
        if found.faults:
            self.faults.append(f"{symbol}: {says}. {first_of(found.faults)}.")
        for number, why in (
            (found.imported, "came from an import"),
            (found.in_holes, "lie in a hole of the ticks"),
            (found.unknown, "came before its first tick, and what they repeat is not archived"),
            (found.filled_since, "were stored after the archive was made"),
        ):
            if number:
                self.notes.append(f"{symbol}: {number} minutes are not compared: they {why}.")

    def _prove_signals(self) -> None:
        manifest = self._manifest(self.day)
        symbols = {file.symbol for file in manifest.files if file.kind == "ticks"} if manifest else set()
        days = ArchivedDays(self._ticks_of, self._minutes_of, minutes_now)
        for signal in closed_on(self.day):
            if signal.instrument.symbol not in symbols:
                continue
            try:
                judged = judge_again(signal, days)
            except NotJudged as error:
                self.notes.append(f"Signal {signal.pk} is not judged again: {error}.")
                continue
            if judged.fault:
                self.faults.append(f"Signal {signal.pk}: {judged.fault}.")
                continue
            self.counts["signals"] += 1
            if judged.note:
                self.notes.append(f"Signal {signal.pk}: {judged.note}.")

    def _manifest(self, day: date) -> ArchiveManifest | None:
        if day not in self._manifests:
            try:
                self._manifests[day] = decoded_of(day, self._store.read(manifest_path(day)))
            except NotStored:
                self._manifests[day] = None
            except BadManifest as error:
                self._manifests[day] = None
                self.faults.append(f"The manifest of {day} cannot be used: {error}.")
        return self._manifests[day]

    def _ticks_of(self, symbol: str, day: date) -> list[ArchivedTick]:
        known = self._ticks.get((symbol, day))
        if known is None:
            known = self._ticks[symbol, day] = list(self.file(symbol, day, "ticks").ticks())
        return known

    def _minutes_of(self, symbol: str, day: date) -> dict[int, ArchivedMinute]:
        return self.file(symbol, day, "candles").minutes()

    def file(self, symbol: str, day: date, kind: str) -> CheckedFile:
        """Raises NotJudged if it is missing or incomplete."""
        manifest = self._manifest(day)
        if manifest is None:
            raise NotJudged(f"{day} is not archived")
        if any(hole.symbol == symbol for hole in manifest.holes):
            raise NotJudged(f"ticks of {symbol} are missing on {day}")
        for file in manifest.files:
            if (file.symbol, file.kind) == (symbol, kind):
                try:
                    return CheckedFile(self._store, file)
                except (NotStored, NotAsListed):
                    raise NotJudged(f"{file.path} is not whole") from None
        raise NotJudged(f"no {kind} of {symbol} are archived on {day}")


def minutes_now(symbol: str, day: date) -> dict[int, ArchivedMinute]:
    """Those of the database."""
    instrument = Instrument.objects.filter(symbol=symbol).first()
    rows = [] if instrument is None else stored_minutes(instrument.pk, day)
    return {int(str(time_ms)): ArchivedMinute(*values) for time_ms, *values in rows}  # type: ignore[arg-type]


def verify_day(
    store: ArchiveStore, day: date, listed: Collection[str] = (), *, has_database: bool = True
) -> DayVerdict:
    return Proving(store, day, listed, has_database=has_database).run()


# The archived ticks of a stretch of time, for the bundles of publishers.
# Days are those of the sources' clocks, and ticks are asked for by when they were accepted.
APART_MS = 60_000
# Signals follow one another, and so do the days that are read for them.
MOST_OPEN = 3


def days_between(publish: Payload, since_ms: int, until_ms: int) -> tuple[date, date]:
    """The quote of the publication shows how far the clocks were apart."""
    quote = publish["evidence"]
    late_ms = ms_of(publish["published_at"]) - ms_of(quote["at"]) if quote else 0
    return day_of(since_ms - max(late_ms, 0) - APART_MS), day_of(until_ms - min(late_ms, 0) + APART_MS)


class ArchivedWindows:
    """For one bundle."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, date], CheckedFile] = {}

    def __call__(self, publish: Payload, since_ms: int, until_ms: int) -> list[Tick] | None:
        """None if not all of them are archived. An archive that is away is an OSError."""
        first, last = days_between(publish, since_ms, until_ms)
        found: list[Tick] = []
        try:
            for number in range((last - first).days + 1):
                file = self._file(str(publish["symbol"]), first + timedelta(number))
                found += map(as_judged, file.ticks((since_ms, until_ms)))
        except NotJudged:
            return None
        return sorted(found, key=lambda tick: (tick.accepted_ms, tick.seq))

    def _file(self, symbol: str, day: date) -> CheckedFile:
        file = self._open.get((symbol, day))
        if file is None:
            if not has_pyarrow():
                raise NotJudged("pyarrow is missing")
            file = Proving(archive_store(), day, (), has_database=False).file(symbol, day, "ticks")
            if not file.says_when_accepted:
                raise NotJudged(f"the file of {day} does not say when ticks were accepted")
            self._open[symbol, day] = file
            while len(self._open) > MOST_OPEN:
                self._open.pop(next(iter(self._open)))
        return file
