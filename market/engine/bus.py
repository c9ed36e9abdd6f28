"""The engine's journal on its way to whoever shows prices: here in the process that makes them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Protocol

from market.prices.records import AnyRecord

from .lease import Place

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
    """One process: whoever listens hears at once."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self.place = Place(new_epoch(), 0)

    async def open(self, owner: Owner, place: Place) -> list[AnyRecord]:
        """Numbers given after the last checkpoint are not known any more, so the numbering starts anew."""
        self.place = Place(new_epoch(), place.position)
        return []

    def publish(self, records: list[AnyRecord]) -> None:
        self._hear(records)

    def seal(self) -> Place:
        self.place = Place(self.place.epoch, self.place.position + 1)
        return self.place

    async def settle(self) -> None:
        """Nobody else has to hear of it."""

    async def close(self) -> None:
        pass
