"""A web process beside a separate engine: its prices follow the bus."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from redis.exceptions import RedisError

from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.program.commands import command
from core.redis.connections import connect_redis, key_of
from core.threads import in_thread
from instruments.catalogue import catalogue
from market.prices.history import History
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, JournalPosition, SeriesBegan
from market.store.checkpoints import Checkpoint
from market.store.loading import load, load_series

from .journal import STREAM, RecordListener, decode, number_of

logger = logging.getLogger(__name__)
bus_away = LastingFault(logger, "The bus is not heard, trying again")
database_away = LastingFault(logger, "The prices wait for the database")
NumberingListener = Callable[[str, Mapping[str, Checkpoint]], None]
"""Is given the epoch of the numbering, and where each instrument stands."""
BLOCK_MS = 1000
RETRY_S = 0.2
COUNT = 500

# An engine tells how it is doing each second.
QUIET_S = 5.0


class OutOfStep(Exception):
    """Something was missed, or the numbering began anew. It goes on from what is written up to `needed`."""

    def __init__(self, why: str, needed: JournalPosition) -> None:
        super().__init__(why)
        self.needed = needed


class BusReader:
    """`hear` gets every batch of records after it was applied; `missed` is told when some never came."""

    def __init__(
        self,
        url: str,
        prices: Prices,
        hear: RecordListener,
        missed: NumberingListener,
        quiet_s: float = QUIET_S,
    ) -> None:
        self._stream = key_of(STREAM)
        self._redis = connect_redis(url, socket_timeout=BLOCK_MS / 1000 + 2, socket_connect_timeout=2)
        self._prices = prices
        self._hear, self._missed = hear, missed
        self._quiet_s = quiet_s
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

    async def start(self) -> Mapping[str, Checkpoint]:
        """Returns where each instrument stands."""
        checkpoints, self.journal_position = await in_thread(load, self._prices)
        self._heard_s = time.monotonic()
        await self._loop.start()
        return checkpoints

    async def stop(self) -> None:
        await self._loop.stop()
        await self._redis.aclose()

    async def _read(self) -> None:
        last: Any = f"{self.journal_position.number}-0"
        answer: Any = await self._redis.xread({self._stream: last}, count=COUNT, block=BLOCK_MS)
        self._watch(is_heard=bool(answer))
        try:
            for _, entries in answer:
                for entry_id, fields in entries:
                    await self._take(number_of(entry_id), fields[b"e"].decode(), fields[b"d"])
        except OutOfStep as error:
            logger.warning("The prices are loaded anew: %s", error)
            await self._catch_up(error.needed)

    def _watch(self, *, is_heard: bool) -> None:
        if is_heard:
            if self._heard_s is None:
                logger.info("The market engine is heard again")
            self._heard_s = time.monotonic()
        elif self._heard_s is not None and time.monotonic() - self._heard_s > self._quiet_s:
            start = command("run_engine")
            logger.warning("No market engine is heard: prices stand still. Start `%s`", start)
            self._heard_s = None

    async def _take(self, number: int, epoch: str, data: bytes) -> None:
        if epoch != self.journal_position.epoch:
            raise OutOfStep(f"the numbering began anew ({epoch})", JournalPosition(epoch, number - 1))
        if number != self.journal_position.number + 1:
            missing = number - self.journal_position.number - 1
            raise OutOfStep(f"{missing} entries of the bus are missing", JournalPosition(epoch, number - 1))
        records = decode(data)
        if any(record.symbol and catalogue.known(record.symbol) is None for record in records):
            await catalogue.load()
        # All at once, after what may fail: an entry that is taken again must not be applied twice.
        begun = [await self._series_of(record) for record in records if type(record) is SeriesBegan]
        self._apply(records, deque(begun))
        self.journal_position = JournalPosition(epoch, number)
        # What the database held was older than what was heard before the prices were loaded anew.
        if epoch != self._heard.epoch or number > self._heard.number:
            self._heard = self.journal_position
            self._hear(records)

    async def _series_of(self, began: SeriesBegan) -> History | None:
        facts = catalogue.known(began.symbol)
        return None if facts is None else await load_series(facts, began.at_ms, simulated=began.simulated)

    def _apply(self, records: list[AnyRecord], begun: deque[History | None]) -> None:
        for record in records:
            if type(record) is SeriesBegan and (fresh := begun.popleft()) is not None:
                self._prices.histories[record.symbol] = fresh
            if (facts := catalogue.known(record.symbol)) is not None:
                self._prices.apply(record, facts)

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
        self._prices.replace(fresh)
        self.journal_position = position
        self._missed(position.epoch, checkpoints)
