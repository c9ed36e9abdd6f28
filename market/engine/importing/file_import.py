"""One file of ticks into stored candles, a day at a time, from where an earlier import stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from django.db import transaction

from instruments.catalogue import InstrumentFacts
from market.engine.files.format import BadFile, Batch, Place
from market.engine.files.tick_file import TickFile
from market.engine.store import moment, to_ms
from market.imports import UnfinishedImport
from market.prices.candles import Candle
from market.prices.ticks import Tick
from market.prices.timeframes import MINUTE_MS, TIMEFRAMES

from .door import Door
from .minutes import End, Minutes
from .storing import store_minutes
from .tally import Fault, StoppedAtFault, Tally


class Terms(NamedTuple):
    """What holds for all files of an import."""

    facts: InstrumentFacts
    candle_price: str
    now_ms: int
    point: float
    strict: bool = False


class FileImport:
    def __init__(self, terms: Terms, file: TickFile, digest: str, tally: Tally, before: End | None) -> None:
        self._terms, self._file, self._digest, self._tally = terms, file, digest, tally
        self._basis = "trades" if file.format.holds_trades else terms.candle_price
        self._door = Door(terms.facts, terms.now_ms, before and before.tick)
        self._minutes = Minutes(terms.facts, mid=terms.candle_price == "mid", before=before)
        self._waiting: list[Candle] = []
        known = UnfinishedImport.objects.filter(**self._identity()).first() if digest else None
        self._place = Place(known.offset, known.line) if known else Place()
        self._stored_ms = to_ms(known.minute_at) if known else 0
        """Minutes before this one are stored already."""
        self._minute_ms = self._stored_ms
        self.end: End | None = None
        """Where the whole file ended."""
        self.last_quote: Tick | None = None
        """The last bid and ask that was taken; None of trades, which have none."""

    def run(self, go_on: Callable[[], bool]) -> bool:
        """Until the end, or until told after a batch not to go on. Says whether it came to the end."""
        facts = self._terms.facts
        try:
            for batch in self._file.batches(facts.symbol, self._terms.point, self._place):
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

    def _take(self, batch: Batch) -> None:
        taken, refused = self._door.sift(batch.ticks)
        faults = [Fault(self._file.path, line, "malformed") for line in batch.malformed]
        faults += [Fault(self._file.path, batch.lines[index], reason) for index, reason in refused]
        if faults and self._terms.strict:
            raise StoppedAtFault(min(faults))
        self._tally.count(faults)
        self._tally.ticks += len(taken)
        if taken and not self._file.format.holds_trades:
            self.last_quote = taken[-1]
        self._waiting += filter(self._is_wanted, self._minutes.take(taken))
        forming_ms = self._minutes.forming_ms
        if forming_ms is not None and forming_ms != self._minute_ms:
            self._minute_ms, self._place = forming_ms, batch.place

    def _is_wanted(self, minute: Candle) -> bool:
        """Neither stored before nor still running."""
        return self._stored_ms <= minute.opened_ms <= self._terms.now_ms - MINUTE_MS

    def _holds_a_day(self) -> bool:
        day_ms = TIMEFRAMES["1d"]
        return bool(self._waiting) and self._waiting[0].opened_ms // day_ms < self._minute_ms // day_ms

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
                    defaults={"minute_at": moment(self._minute_ms), **self._place._asdict()},
                )
        self._tally.stored(waiting[0].opened_ms, waiting[-1].opened_ms, len(waiting))
        self._tally.left = self._tally.left - changed.made | changed.left

    def _identity(self) -> dict[str, Any]:
        return {"instrument_id": self._terms.facts.id, "digest": self._digest, "basis": self._basis}
