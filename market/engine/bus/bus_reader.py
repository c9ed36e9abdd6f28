"""A web process beside a separate engine: its prices follow the bus."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence

from redis.exceptions import RedisError

from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.program.commands import command
from core.redis.connections import key_of
from core.redis.stream_reads import StreamEntry, StreamReads
from core.threads import in_thread
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, JournalPosition
from market.store.checkpoints import Checkpoint
from market.store.loading import load

from .journal import STATUS, STREAM, decode, number_of
from .price_follower import BusListener, PriceFollower

logger = logging.getLogger(__name__)
bus_away = LastingFault(logger, "The bus is not heard, trying again")
database_away = LastingFault(logger, "The prices wait for the database")
BLOCK_MS = 1000
RETRY_S = 0.2
COUNT = 500

# What comes together costs once. So old may be what is answered by a process that nobody asks or follows.
GATHER_S = 0.025

# An engine tells how it is doing each second.
QUIET_S = 5.0


class OutOfStep(Exception):
    """Something was missed, or the numbering began anew. It goes on from what is written up to `needed`."""

    def __init__(self, why: str, needed: JournalPosition) -> None:
        super().__init__(why)
        self.needed = needed


class BusReader:
    """Reads the entries in their order, and starts anew from the database when some are missing."""

    def __init__(self, url: str, prices: Prices, listener: BusListener, quiet_s: float = QUIET_S) -> None:
        self._entries = StreamReads(url, key_of(STREAM), COUNT, BLOCK_MS)
        self._prices, self._quiet_s = prices, quiet_s
        self._listener, self.follower = listener, PriceFollower(prices, listener)
        self.must_read_status = False
        """The engine has a new one."""
        self._loop = BackgroundLoop(
            "market reader",
            self._read,
            fault=bus_away,
            broke="The market reader broke and goes on",
            passing=(RedisError, OSError),
            again=RETRY_S,
        )
        self.journal_position = self._heard = JournalPosition("", 0)
        self._heard_s: float | None = None
        """When anything was heard last; None once its absence has been told."""
        self._has_more = False

    async def start(self) -> Mapping[str, Checkpoint]:
        """Returns where each instrument stands."""
        checkpoints, self.journal_position = await in_thread(load, self._prices)
        self._heard_s = time.monotonic()
        self.follower.start()
        await self._loop.start()
        return checkpoints

    async def stop(self) -> None:
        self.follower.stop()
        await self._loop.stop()
        await self._entries.close()

    async def _read(self) -> None:
        if self.follower.wanted.are_none and not self._has_more:
            await asyncio.sleep(GATHER_S)
        entries = await self._entries.after(f"{self.journal_position.number}-0")
        self._has_more = len(entries) >= COUNT
        self._watch(is_heard=bool(entries))
        self.follower.wanted.check(time.monotonic())
        try:
            await self._take(entries)
            await self._read_status()
        except OutOfStep as error:
            logger.warning("The prices are loaded again: %s", error)
            await self._catch_up(error.needed)

    def _watch(self, *, is_heard: bool) -> None:
        if is_heard:
            if self._heard_s is None:
                logger.info("The market engine is heard again")
            self._heard_s = time.monotonic()
        elif self._heard_s is not None and time.monotonic() - self._heard_s > self._quiet_s:
            start = command("run_engine")
            logger.warning(
                "No market engine is heard: prices stand still. Start `%s`, or look at Redis if one runs",
                start,
            )
            self._heard_s = None

    async def _take(self, entries: Sequence[StreamEntry]) -> None:
        """Those before the first that does not follow, and then that one's fault."""
        known, heard = list[AnyRecord](), list[AnyRecord]()
        position, fault = self.journal_position, None
        for entry_id, (_, epoch, _, data) in entries:
            following = JournalPosition(epoch.decode(), number_of(entry_id))
            if fault := out_of_step(position, following):
                break
            position = following
            # What the database held was older than what was heard before the prices were loaded anew.
            is_new = following.epoch != self._heard.epoch or following.number > self._heard.number
            (heard if is_new else known).extend(decode(data))
        if position != self.journal_position:
            await self.follower.take(known, heard)
            self.journal_position = position
            self._heard = position if heard else self._heard
        if fault is not None:
            raise fault

    async def _read_status(self) -> None:
        if self.must_read_status:
            self.must_read_status = False
            if status := await self._entries.value(key_of(STATUS)):
                self._listener.told(status)

    async def _catch_up(self, needed: JournalPosition) -> None:
        """Load what the engine has written, once it has written that much or another engine has written
        instead: an engine that was killed before its first write never will."""
        while True:
            fresh = Prices(self._prices.candle_price)
            try:
                checkpoints, position = await in_thread(load, fresh)
            except UNANSWERED as error:
                database_away.tell(error)
            else:
                database_away.over()
                if position.epoch == needed.epoch:
                    if position.number >= needed.number:
                        break
                elif position.epoch != self.journal_position.epoch:
                    break
            await asyncio.sleep(RETRY_S)
        self.journal_position = position
        self.follower.begin(fresh, position.epoch, checkpoints)


def out_of_step(known: JournalPosition, following: JournalPosition) -> OutOfStep | None:
    epoch, number = following
    needed = JournalPosition(epoch, number - 1)
    if epoch != known.epoch:
        return OutOfStep(f"a new numbering began ({epoch})", needed)
    if number != known.number + 1:
        return OutOfStep(f"{number - known.number - 1} entries of the bus are missing", needed)
    return None
