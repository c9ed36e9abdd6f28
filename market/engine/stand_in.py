"""A stand-in has in memory what the database holds, and follows what the other engine writes: the candles of
thousands of instruments take longer to read than prices may stand still."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from contextlib import suppress

from core.redis.connections import AWAY
from core.threads import in_thread
from market.engine.bus.local_bus import LocalBus
from market.engine.bus.price_follower import BusListener, PriceFollower
from market.engine.bus.redis_bus import RedisBus
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, JournalPosition
from market.store.loading import LoadedMarket, load

logger = logging.getLogger(__name__)
TRIES, RETRY_S = 10, 0.2


class StandIn:
    """Goes no further on the bus than the database has come: what was published after that belongs to the
    tail, which the engine takes up once the lease is its own."""

    def __init__(self, prices: Prices, default_feed: str, bus: LocalBus | RedisBus) -> None:
        self._prices, self._default_feed, self._bus = prices, default_feed, bus
        self._follower = PriceFollower(prices, NOBODY)
        self._reached: JournalPosition | None = None
        """None: all has to be read."""
        self._stale: set[str] = set()
        """Symbols whose candles something else than an engine has written."""

    def forget(self, symbol: str) -> None:
        self._stale.add(symbol)

    def take_stale(self) -> set[str]:
        stale, self._stale = self._stale, set()
        return stale

    async def follow(self, written: JournalPosition) -> None:
        """Go on to what the database holds now."""
        if self._reached is None:
            await self.load()
            logger.info("The candles of %d instruments are in memory", len(self._prices.histories))
        elif self._stale:
            await self.load()
        elif written.epoch != self._reached.epoch or written.number > self._reached.number:
            await self._go_on(self._reached, written)

    async def load(self) -> LoadedMarket:
        """All as the database has it; only what is not known yet is read."""
        while True:
            reached, stale = self._reached, self.take_stale()
            histories = {} if reached is None else self._prices.histories
            known = {symbol: each for symbol, each in histories.items() if symbol not in stale}
            fresh = Prices(self._prices.candle_price)
            # If this fails, what is stale has to be read all the same.
            self._reached = None
            loaded = await in_thread(load, fresh, self._default_feed, known)
            anew = {symbol for symbol, each in fresh.histories.items() if each is not known.get(symbol)}
            self._prices.replace(fresh)
            with suppress(*AWAY):
                if reached is None or await self._go_on(reached, loaded.journal_position, but_for=anew):
                    self._reached = loaded.journal_position
                    return loaded

    async def _go_on(
        self, reached: JournalPosition, until: JournalPosition, but_for: Collection[str] = ()
    ) -> bool:
        """False where something is missing: then all is read anew."""
        records = await self._read(reached, until)
        self._reached = None
        if records is None:
            return False
        await self._follower.take([record for record in records if record.symbol not in but_for], [])
        self._reached = until
        return True

    async def _read(self, reached: JournalPosition, until: JournalPosition) -> list[AnyRecord] | None:
        if not isinstance(self._bus, RedisBus):
            return None
        for _ in range(TRIES):
            if (records := await self._bus.between(reached, until)) is not None:
                return records
            # The database may have had the last of it first.
            await asyncio.sleep(RETRY_S)
        return None


def hear_nothing(records: list[AnyRecord]) -> None:
    """Nobody asks a stand-in."""


NOBODY = BusListener(
    hear_nothing, lambda symbol, records, came_ms: None, lambda epoch, checkpoints: None, lambda: None
)
