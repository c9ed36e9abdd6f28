"""Imports files in order, a day at a time, from where an earlier import stopped: their minutes with every
coarser candle, and the last quote. A file whose prices have another unit is refused."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from statistics import median
from typing import Any, NamedTuple

from django.db import models, transaction
from django.db.models import Q, QuerySet

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.times import MINUTE_MS, epoch_ms, moment
from instruments.facts import IMPORTED, PUSH, InstrumentFacts
from market.engine.files.format import BASIS, BI5, BadFile, FileBatch, FilePosition, usual_point
from market.engine.files.tick_file import TickFile, digest
from market.engine.importing.minutes import (
    BarMinutes,
    BatchCheck,
    CoarserBars,
    CoarserKey,
    DayBefore,
    FileEnd,
    FileMinutes,
)
from market.engine.importing.tally import ImportTally, LineFault, StoppedAtFault
from market.engine.venues.venue_history import LONGEST_MS
from market.models import Candle, FormerQuote, LastQuote, UnfinishedImport
from market.prices.candles import COARSER, DAY_MS, PriceBar, interval_start
from market.prices.records import Tick
from market.store.candle_rows import FLOATS, CandleToWrite, candle_of, write_candles
from market.store.series import present_kind

MADE = ("source", "partial", "by_venue")


class Changed(NamedTuple):
    """Which coarser candles."""

    made: set[CoarserKey]
    left: set[CoarserKey]
    """Those that hold one of the minutes and stay as they were: others of their minutes were dropped."""


def store_minutes(facts: InstrumentFacts, minutes: Sequence[PriceBar], basis: str, now_ms: int) -> Changed:
    """Closed minutes in order, within a transaction; what is coarser is made of all that are stored then."""
    for minute in minutes:
        minute.source = IMPORTED
    changed = Changed(set(), set())
    for day_ms, of_day in groupby(minutes, lambda minute: interval_start(minute.opened_ms, DAY_MS)):
        written = list(of_day)
        bars = coarser_of_day(facts, day_ms)
        known = minutes_of_day(facts, day_ms) if any(bars.values()) else []
        before = DayBefore(bars, known, now_ms)
        write_candles((facts.id, "1m", minute, basis) for minute in written)
        between = written[0].opened_ms, written[-1].opened_ms
        rebuilt = before.rebuild(minutes_of_day(facts, day_ms), *between, facts.hours)
        write_candles(_closed(facts, rebuilt.made, basis, now_ms))
        changed.made.update((timeframe, candle.opened_ms) for timeframe, candle in rebuilt.made)
        changed.left.update(rebuilt.left)
    return changed


def minutes_of_day(facts: InstrumentFacts, day_ms: int) -> list[PriceBar]:
    rows = _of_day(facts, day_ms).filter(timeframe="1m")
    in_order = rows.order_by("opened_at").annotate(**FLOATS)
    return [candle_of(values) for values in in_order.values_list("opened_at", *FLOATS, *MADE)]


def coarser_of_day(facts: InstrumentFacts, day_ms: int) -> CoarserBars:
    bars: CoarserBars = {timeframe: {} for timeframe in COARSER}
    rows = _of_day(facts, day_ms).filter(timeframe__in=COARSER).annotate(**FLOATS)
    for timeframe, *values in rows.values_list("timeframe", "opened_at", *FLOATS, *MADE):
        candle = candle_of(values)
        bars[timeframe][candle.opened_ms] = candle
    return bars


def _of_day(facts: InstrumentFacts, day_ms: int) -> QuerySet[Candle]:
    return Candle.objects.filter(
        instrument_id=facts.id,
        simulated=False,
        opened_at__gte=moment(day_ms),
        opened_at__lt=moment(day_ms + DAY_MS),
    )


def _closed(
    facts: InstrumentFacts, candles: list[tuple[str, PriceBar]], basis: str, now_ms: int
) -> Iterator[CandleToWrite]:
    """Those whose interval is over, or ends before the market opens again, and those that were stored before,
    which have to fit their minutes too."""
    is_open, reopens_ms = facts.hours.is_open(now_ms), facts.hours.next_open(now_ms)
    until_ms = now_ms if is_open else reopens_ms
    for timeframe, candle in candles:
        is_over = until_ms is None or candle.opened_ms + COARSER[timeframe] <= until_ms
        if is_over or _is_stored(facts, timeframe, candle):
            yield facts.id, timeframe, candle, basis


def _is_stored(facts: InstrumentFacts, timeframe: str, candle: PriceBar) -> bool:
    opened_at = moment(candle.opened_ms)
    own = Candle.objects.filter(instrument_id=facts.id, simulated=False, timeframe=timeframe)
    return own.filter(opened_at=opened_at).exists()


def since_when_a_venue_fills(facts: InstrumentFacts, now_ms: int) -> int:
    """It is asked for the minutes after its last quote, and these judge signals as those of files do not."""
    row = LastQuote.objects.filter(pk=facts.id, simulated=False).first()
    if row is None or row.quoted_at is None or row.source.partition(":")[0] in ("", PUSH, IMPORTED):
        return now_ms
    return max(interval_start(epoch_ms(row.quoted_at), MINUTE_MS), now_ms - LONGEST_MS)


@transaction.atomic
def keep_quote(facts: InstrumentFacts, tick: Tick) -> bool:
    """Becomes the last real quote if it is newer; False if not. While prices are simulated it waits. It never
    counts as a feed's price, as signals are counted and closed by those, and staff must not be able to choose
    it."""
    at = moment(tick.time_ms)
    bid, ask = round(tick.bid, facts.digits), round(tick.ask, facts.digits)
    quote: dict[str, Any] = {"bid": bid, "ask": ask, "quoted_at": at, "source": IMPORTED}
    if present_kind(facts.id):
        known = FormerQuote.objects.filter(pk=facts.id, simulated=False)
        if not known.exists():
            FormerQuote.objects.create(instrument_id=facts.id, simulated=False, **quote)
            return True
        return bool(known.filter(quoted_at__lt=at, source=IMPORTED).update(**quote))
    LastQuote.objects.get_or_create(instrument_id=facts.id)
    older = Q(quoted_at=None) | Q(quoted_at__lt=at, source=IMPORTED)
    return bool(LastQuote.objects.filter(older, pk=facts.id).update(**quote))


# Prices of a file beside those that are stored: a unit that is wrong by a power of ten shows in them.
NEAR = timedelta(days=30)
MOST_TIMES = 10

# The finest, and the finest that is kept whatever its age.
LOOKED_AT = ("1m", "1h")


def refuse_another_scale(facts: InstrumentFacts, path: str, ticks: Sequence[Tick], point: float) -> None:
    near = nearest_candle(facts, ticks[0].time_ms)
    if near is None:
        return
    price, known = median(tick.bid for tick in ticks), float(near.close)
    if max(price, known) > MOST_TIMES * min(price, known):
        raise BadFile(
            f"{path} has prices near {price:.{facts.digits}f} in units of {point:.10g}, and the candle "
            f"stored nearest, of {near.opened_at:%Y-%m-%d %H:%M} UTC, closes at {known:.{facts.digits}f}. "
            "Name the right unit with --point, or the same if it is the candle that is wrong."
        )


def nearest_candle(facts: InstrumentFacts, at_ms: int) -> Candle | None:
    at, own = moment(at_ms), Candle.objects.filter(instrument_id=facts.id, simulated=False)
    near = [
        candle
        for of in (own.filter(timeframe=timeframe) for timeframe in LOOKED_AT)
        for side in (
            of.filter(opened_at__range=(at - NEAR, at)).order_by("-opened_at"),
            of.filter(opened_at__range=(at, at + NEAR)).order_by("opened_at"),
        )
        for candle in side[:1]
    ]
    return min(near, key=lambda candle: abs(candle.opened_at - at), default=None)


class ImportTerms(NamedTuple):
    """What holds for all files of an import."""

    facts: InstrumentFacts
    candle_price: str
    now_ms: int
    point: float | None = None
    """The unit of whole-number prices; None if it is the usual one."""
    strict: bool = False


class Importer:
    def __init__(self, terms: ImportTerms, *, restart: bool = False) -> None:
        self.tally = ImportTally()
        self._terms = terms
        self._restart = restart
        self._end: FileEnd | None = None
        """Where the file before ended."""
        self._quote: Tick | None = None
        """The newest bid and ask of files that have both."""

    def run(self, paths: Sequence[str], format_name: str | None, go_on: Callable[[int], bool]) -> bool:
        """False if it was stopped: `go_on` is asked after each batch, with how many bytes were read."""
        digests = [digest(path) for path in paths]
        if self._restart:
            self._of(digests).delete()
        begun, done = self._begun(digests), 0
        try:
            for path, known in list(zip(paths, digests, strict=True))[begun:]:
                with TickFile(path, format_name) as file:
                    before, done = done, done + file.size
                    if not self._take(file, known, before, go_on):
                        return False
        finally:
            # Whatever ended it, what was stored counts.
            self._publish()
        self._of(digests).delete()
        return True

    def _begun(self, digests: list[str]) -> int:
        """The last file that an import before this one began. The files before it are stored, and to store
        one again would take from its last minute what the next one added."""
        known = set(self._of(digests).values_list("digest", flat=True))
        return max((number for number, digest in enumerate(digests) if digest in known), default=0)

    def _take(self, file: TickFile, digest: str, before: int, go_on: Callable[[int], bool]) -> bool:
        importing = FileImport(self._terms, file, digest, self.tally, self._end)
        try:
            return importing.run(lambda: go_on(before + file.position))
        finally:
            self._end = importing.end or self._end
            quote = importing.last_quote
            if quote is not None and (self._quote is None or quote.time_ms > self._quote.time_ms):
                self._quote = quote

    def _publish(self) -> None:
        if self.tally.minutes:
            with transaction.atomic():
                if self._quote is not None:
                    keep_quote(self._terms.facts, self._quote)
                ControlEvent.objects.publish(EventKind.CANDLES_IMPORTED, symbol=self._terms.facts.symbol)

    def _of(self, digests: list[str]) -> models.QuerySet[UnfinishedImport]:
        bases = self._terms.candle_price, "trades", BASIS
        instrument_id = self._terms.facts.id
        return UnfinishedImport.objects.filter(
            instrument_id=instrument_id, digest__in=digests, basis__in=bases
        )


class FileImport:
    def __init__(
        self, terms: ImportTerms, file: TickFile, digest: str, tally: ImportTally, before: FileEnd | None
    ) -> None:
        self._terms, self._file, self._digest, self._tally = terms, file, digest, tally
        self._basis = file.format.basis or terms.candle_price
        self._point = terms.point or usual_point(file.path, terms.facts.symbol, terms.facts.digits)
        self._check = BatchCheck(terms.facts, terms.now_ms, before and before.tick)
        kind = BarMinutes if self._basis == BASIS else FileMinutes
        self._minutes = kind(terms.facts, mid=terms.candle_price == "mid", before=before)
        self._waiting: list[PriceBar] = []
        known = UnfinishedImport.objects.filter(**self._identity()).first() if digest else None
        self._position = FilePosition(known.offset, known.line) if known else FilePosition()
        self._stored_ms = epoch_ms(known.minute_at) if known else 0
        """Minutes before this one are stored already."""
        self._minute_ms = self._stored_ms
        self._venue_ms = since_when_a_venue_fills(terms.facts, terms.now_ms)
        self.end: FileEnd | None = None
        """Where the whole file ended."""
        self.last_quote: Tick | None = None
        """The last bid and ask that was taken; None of trades and bars, which have none."""

    def run(self, go_on: Callable[[], bool]) -> bool:
        """Until the end, or until `go_on` returns False after a batch. True if it came to the end."""
        facts = self._terms.facts
        try:
            for batch in self._file.batches(facts.symbol, self._point, self._position):
                self._take(batch)
                if self._holds_a_day():
                    self._store()
                if not go_on():
                    self._store()
                    return False
        except (BadFile, StoppedAtFault):
            self._store()
            raise
        self.end = self._minutes.end()
        self._tally.gaps += self._minutes.gaps
        if self.end is not None and self._is_wanted(self.end.minute):
            self._waiting.append(self.end.minute)
        self._store()
        return True

    def _take(self, batch: FileBatch) -> None:
        taken, refused = self._check.sift(batch.ticks)
        faults = [LineFault(self._file.path, line, "malformed") for line in batch.malformed]
        faults += [LineFault(self._file.path, batch.lines[index], reason) for index, reason in refused]
        if faults and self._terms.strict:
            first = min(faults)
            self._keep(batch, batch.ticks[: bisect_left(batch.lines, first.line)])
            raise StoppedAtFault(first)
        self._tally.count(faults)
        self._keep(batch, taken)

    def _keep(self, batch: FileBatch, taken: list[Tick]) -> None:
        if taken and self._file.format is BI5 and self._terms.point is None:
            refuse_another_scale(self._terms.facts, self._file.path, taken, self._point)
        self._tally.ticks += len(taken)
        self._tally.kinds.add("bars" if self._basis == BASIS else "ticks")
        if taken and not self._file.format.basis:
            self.last_quote = taken[-1]
        self._waiting += filter(self._is_wanted, self._minutes.take(taken))
        forming_ms = self._minutes.forming_ms
        if forming_ms is not None and forming_ms != self._minute_ms:
            self._minute_ms, self._position = forming_ms, batch.position

    def _is_wanted(self, minute: PriceBar) -> bool:
        """Neither stored before nor still running, nor to be had from a venue."""
        is_over = self._stored_ms <= minute.opened_ms <= self._terms.now_ms - MINUTE_MS
        is_of_venue = is_over and minute.opened_ms >= self._venue_ms
        self._tally.of_venue += is_of_venue
        return is_over and not is_of_venue

    def _holds_a_day(self) -> bool:
        return bool(self._waiting) and self._waiting[0].opened_ms // DAY_MS < self._minute_ms // DAY_MS

    def _store(self) -> None:
        """The minutes, what they are part of, and how far this came: all or nothing."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        with transaction.atomic():
            changed = store_minutes(self._terms.facts, waiting, self._basis, self._terms.now_ms)
            if self._digest:
                UnfinishedImport.objects.update_or_create(
                    **self._identity(),
                    defaults={"minute_at": moment(self._minute_ms), **self._position._asdict()},
                )
        self._tally.stored(waiting[0].opened_ms, waiting[-1].opened_ms, len(waiting))
        self._tally.left = self._tally.left - changed.made | changed.left

    def _identity(self) -> dict[str, Any]:
        return {"instrument_id": self._terms.facts.id, "digest": self._digest, "basis": self._basis}
