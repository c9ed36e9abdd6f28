"""The engine's journal on its way to whoever shows prices: here in the process that makes them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Protocol

from market.prices.records import AnyRecord, Told

from .lease import Place
from .local_journal import LocalJournal

Hear = Callable[[list[AnyRecord]], None]


def new_epoch() -> str:
    return uuid.uuid4().hex[:12]


class Owner(Protocol):
    """Whose journal it is."""

    @property
    def writer(self) -> str: ...

    def stand_down(self) -> None:
        """Another writer has claimed the stream."""

    def flush_soon(self) -> None:
        """The numbering starts anew: no reader can go on before that is in the database."""


class LocalBus:
    """One process: whoever listens hears at once, and the journal before them."""

    def __init__(self, hear: Hear, journal: LocalJournal | None = None) -> None:
        self._hear = hear
        self._journal = journal
        self.place = Place(new_epoch(), 0)

    async def open(self, owner: Owner, place: Place) -> list[AnyRecord]:
        """What was published and not written. Where that is not known, the numbering starts anew, because
        numbers given after the last checkpoint are not known either."""
        entries = None if self._journal is None else self._journal.open(place)
        if entries is None:
            self.place = Place(new_epoch(), place.position)
        else:
            self.place = Place(place.epoch, entries[-1].number if entries else place.position)
        if self._journal is not None:
            self._journal.begin(self.place.epoch, anew=entries is None)
        return [record for entry in entries or () for record in entry.records]

    def publish(self, records: list[AnyRecord]) -> None:
        if self._journal is not None and type(records[0]) is not Told:
            self._journal.add(self.place.position + 1, records)
        self._hear(records)

    def seal(self) -> Place:
        self.place = Place(self.place.epoch, self.place.position + 1)
        if self._journal is not None:
            self._journal.turn()
        return self.place

    def written(self, place: Place) -> None:
        """The database holds everything up to there."""
        if self._journal is not None:
            self._journal.forget(place.position)

    async def settle(self) -> None:
        """Nobody else has to hear of it."""

    async def close(self) -> None:
        if self._journal is not None:
            self._journal.close(self.place)
