"""The engine's journal on its way to whoever shows prices: here in the process that makes them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Protocol

from core.clock import now_ms
from market.prices.records import AnyRecord, StatusRecord

from .journal import JournalPosition, RecentRecords
from .local_journal import LocalJournal

Hear = Callable[[list[AnyRecord]], None]


def new_epoch() -> str:
    return uuid.uuid4().hex[:12]


class JournalWriter(Protocol):
    """Whose journal it is."""

    @property
    def writer(self) -> str: ...

    def lose_lease(self) -> None:
        """Another writer has claimed the stream."""

    def flush_soon(self) -> None:
        """The numbering starts anew: no reader can go on before that is in the database."""


class LocalBus:
    """One process: whoever listens hears at once, and the journal before them."""

    def __init__(self, hear: Hear, journal: LocalJournal | None = None) -> None:
        self._hear = hear
        self._journal = journal
        self.place = JournalPosition(new_epoch(), 0)
        self._recent: RecentRecords | None = None
        self._is_open = False
        """Something was published since the last number was given."""

    async def open(self, writer: JournalWriter, place: JournalPosition) -> list[AnyRecord]:
        """What was published and not written. Where that is not known, the numbering starts anew, because
        numbers given after the last checkpoint are not known either."""
        self._is_open = False
        found = None if self._journal is None else self._journal.open(place)
        if found is None:
            self.place, self._recent = JournalPosition(new_epoch(), place.position), None
            # Until that is in the database, the journal of a killed process belongs to nothing.
            writer.flush_soon()
        else:
            self.place = JournalPosition(place.epoch, found.tail[-1].number if found.tail else place.position)
            self._recent = found.recent
        if self._journal is not None:
            self._journal.begin(self.place, anew=found is None)
        return [record for entry in (found.tail if found else ()) for record in entry.records]

    def take_recent(self) -> RecentRecords:
        """What was published until now in this numbering, by processes before this one too."""
        recent, self._recent = self._recent or RecentRecords(), None
        return recent

    def publish(self, records: list[AnyRecord]) -> None:
        if type(records[0]) is not StatusRecord:
            self._is_open = True
            if self._journal is not None:
                at_ms = now_ms()
                self._journal.add(self.place.position + 1, records, at_ms)
                if self._recent is not None:
                    self._recent.add(at_ms, records)
        self._hear(records)

    def seal(self) -> JournalPosition:
        """Everything published so far has a number; returns the last. None is given for nothing: between what
        the database holds and what the journal does it would be missing."""
        if self._is_open:
            self._is_open = False
            self.place = JournalPosition(self.place.epoch, self.place.position + 1)
            if self._journal is not None:
                self._journal.turn()
        if self._journal is not None:
            self._journal.go_on(self.place)
        return self.place

    def written(self, place: JournalPosition) -> None:
        """The database holds everything up to there."""
        if self._journal is not None:
            self._journal.forget(place.position, now_ms())

    @property
    def is_whole(self) -> bool:
        """A kill takes nothing along that was published, whether or not it is written."""
        return self._journal is None or self._journal.is_whole

    @property
    def has_hole(self) -> bool:
        return self._journal is not None and self._journal.has_hole

    async def settle(self) -> None:
        """Nobody else has to hear of it."""

    async def close(self) -> None:
        if self._journal is not None:
            self._journal.close(self.place)
