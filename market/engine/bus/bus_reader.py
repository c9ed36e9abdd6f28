"""A web process beside a separate engine: its prices follow the bus, from a replica if there is one, and wait
while they must not be shown yet."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any, NamedTuple

from redis.exceptions import RedisError

from core.background import BackgroundLoop
from core.clock import now_ms
from core.database import UNANSWERED
from core.deadlines import patient
from core.fault_log import LastingFault
from core.program import command
from core.redis.connections import connect_redis, key_of
from core.redis.script_calls import StreamEntry, StreamReads
from core.threads import in_thread
from instruments.catalogue import catalogue
from market.prices.history import History
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, JournalPosition, SeriesBegan
from market.store.checkpoints import Checkpoint
from market.store.series import load, load_series

from .journal import HEAD, KEEP_MS, STATUS, STREAM, RecordKeeper, RecordListener, decode, number_of

# Records of symbols that no client follows or requests wait, and are applied together.
WANTED_S, APART_S = 10.0, 1.0
"""A symbol is wanted for the longer time after two requests, at most and at least so far apart."""
CHECK_S = 1.0
CHECKED_AT_ONCE = 4

# Enough to be applied cheaply, and few enough to be still in the processor's cache.
MOST_WAITING = 100

FollowedSymbols = Callable[[], Collection[str] | None]
"""Those that clients follow now; None: all."""


class WantedSymbols:
    """Those that clients follow or request repeatedly. A request once in a while, as of metrics, gets what
    has come, and the ticks after it wait again."""

    def __init__(self, followed: FollowedSymbols) -> None:
        self._followed = followed
        self._requested_s: dict[str, float] = {}
        self._until_s: dict[str, float] = {}
        self._checked_s = 0.0
        self.has_all = False

    def __contains__(self, symbol: str) -> bool:
        return self.has_all or symbol in self._until_s

    @property
    def are_none(self) -> bool:
        return not self.has_all and not self._until_s

    def request(self, symbol: str, now_s: float) -> None:
        """From any thread."""
        passed_s = now_s - self._requested_s.get(symbol, 0.0)
        if passed_s > APART_S:
            self._requested_s[symbol] = now_s
            if passed_s <= WANTED_S:
                self.follow(symbol, now_s)

    def follow(self, symbol: str, now_s: float) -> None:
        self._until_s[symbol] = now_s + WANTED_S

    def check(self, now_s: float) -> None:
        """Forget, once in a while, those that are wanted no longer."""
        if now_s - self._checked_s < CHECK_S:
            return
        self._checked_s, followed = now_s, self._followed()
        self.has_all = followed is None
        for symbol, until_s in list(self._until_s.items()):
            if until_s < now_s and followed is not None and symbol not in followed:
                self._until_s.pop(symbol, None)


class WaitingRecords:
    """Those of one symbol, in their order."""

    __slots__ = ("came_ms", "records")

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self.came_ms: list[int] = []

    def are_due(self, now_ms: int) -> bool:
        """Clients that resume get nothing older."""
        return bool(self.records) and (
            len(self.records) >= MOST_WAITING or self.came_ms[0] < now_ms - KEEP_MS
        )


class WaitingSymbols:
    """Those that are not wanted, with their records."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, WaitingRecords] = OrderedDict()

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._of

    @property
    def symbols(self) -> list[str]:
        return [*self._of]

    def split(self, records: Sequence[AnyRecord], wanted: WantedSymbols, now_ms: int) -> list[AnyRecord]:
        """Keeps the records that may wait, and returns the others."""
        if wanted.has_all and not self._of:
            return list(records)
        known, others = self._of.get, list[AnyRecord]()
        for record in records:
            waiting = known(record.symbol)
            if waiting is None:
                # The engine speaks of itself without a symbol.
                if not record.symbol or record.symbol in wanted:
                    others.append(record)
                    continue
                waiting = self._of[record.symbol] = WaitingRecords()
            waiting.records.append(record)
            waiting.came_ms.append(now_ms)
        return others

    def take(self, symbol: str) -> WaitingRecords | None:
        return self._of.pop(symbol, None)

    def take_due(self, now_ms: int) -> list[tuple[str, WaitingRecords]]:
        """Checks a few symbols; the others have their turn at the next calls."""
        found = []
        for symbol, waiting in list(islice(self._of.items(), CHECKED_AT_ONCE)):
            self._of.move_to_end(symbol)
            if waiting.are_due(now_ms):
                self._of[symbol] = WaitingRecords()
                found.append((symbol, waiting))
        return found

    def clear(self) -> None:
        self._of.clear()


# Whether a replica of the bus is as new as the bus was a moment ago. No machine's clock has to be right.
logger = logging.getLogger(__name__)

# Clients hear of it within three seconds: a look, so long for the replica, another look, and its answer.
REPLICA_LOOK_S, LATE_S, PATIENCE_S = 0.4, patient(1.0), patient(0.5)
MOST_OWED = 100


class ReplicaWatch:
    """`tell` is called with True when what is read here has become late, and with False when it is not."""

    def __init__(
        self,
        master_url: str,
        position: Callable[[], JournalPosition],
        tell: Callable[[bool], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # The client's types name both its synchronous and its asynchronous answers.
        self._redis: Any = connect_redis(master_url)
        self._position, self._tell, self._clock = position, tell, clock
        self._head = key_of(HEAD)
        self._owed: deque[tuple[float, JournalPosition]] = deque(maxlen=MOST_OWED)
        """What the bus had at which time, and the replica has yet to deliver."""
        self._is_late = False
        self._loop = BackgroundLoop(
            "bus replica",
            self.look,
            fault=LastingFault(logger, "The delay of the bus replica is unknown", logging.INFO),
            broke="The replica of the bus could not be compared with the bus",
            passing=(RedisError, OSError),
            after=REPLICA_LOOK_S,
        )

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()
        await self._redis.aclose()

    async def look(self) -> None:
        while self._owed and self._has(self._owed[0][1]):
            self._owed.popleft()
        now_s = self._clock()
        self._turn(bool(self._owed) and now_s - self._owed[0][0] > LATE_S)
        async with asyncio.timeout(PATIENCE_S):
            epoch, number = await self._redis.hmget(self._head, "epoch", "n")
        if epoch is not None:
            self._owed.append((now_s, JournalPosition(epoch.decode(), int(number))))

    def _has(self, asked: JournalPosition) -> bool:
        here, newest = self._position(), self._owed[-1][1]
        if here.epoch == asked.epoch:
            return here.number >= asked.number
        # Nothing more comes of a numbering that has ended.
        return here.epoch == newest.epoch

    def _turn(self, is_late: bool) -> None:
        if is_late != self._is_late:
            self._is_late = is_late
            if is_late:
                logger.warning("The replica of the bus is behind: the streams are stale. See BUS_REPLICA_URL")
            else:
                logger.info("The replica of the bus has caught up")
            self._tell(is_late)


# The prices of a web process follow the records of the bus: at once for symbols that are wanted, and for
# others when they are requested or when a hundred of their records wait.
NumberingListener = Callable[[str, Mapping[str, Checkpoint]], None]
"""Is given the epoch of the numbering, and where each instrument stands."""

# How long a thread waits for the loop before it takes what is known.
LOOP_S = 1.0


class BusListener(NamedTuple):
    hear: RecordListener
    """Gets records after they were applied, and an empty list where all that came have to wait."""
    keep: RecordKeeper
    missed: NumberingListener
    followed: FollowedSymbols
    on_status: Callable[[bytes], None] = lambda status: None
    """Gets the engine's status where the reader was asked for it."""


class PriceFollower:
    def __init__(self, prices: Prices, listener: BusListener) -> None:
        self._prices, self._listener = prices, listener
        self.wanted, self._waiting = WantedSymbols(listener.followed), WaitingSymbols()
        self._home: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def start(self) -> None:
        self._home, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._prices.before_reading = self.request

    def stop(self) -> None:
        self._prices.before_reading = None

    def request(self, symbol: str) -> None:
        """Its prices are about to be read, in any thread."""
        self.wanted.request(symbol, time.monotonic())
        if symbol in self._waiting:
            if threading.get_ident() == self._thread:
                self._apply_waiting(symbol, self._waiting.take(symbol))
            else:
                self._apply_in_loop()

    def follow(self, symbols: Iterable[str]) -> None:
        """From now on, clients are sent the frames of these symbols."""
        for symbol in symbols:
            self.wanted.follow(symbol, time.monotonic())
            self._apply_waiting(symbol, self._waiting.take(symbol))

    def follow_all(self) -> None:
        self.wanted.has_all = True
        self._apply_all_waiting()

    def begin(self, fresh: Prices, epoch: str, checkpoints: Mapping[str, Checkpoint]) -> None:
        """Prices that were loaded again include what waits here."""
        self._waiting.clear()
        self._prices.replace(fresh)
        self._listener.missed(epoch, checkpoints)

    async def take(self, known: Sequence[AnyRecord], heard: Sequence[AnyRecord]) -> None:
        """`known` were read before the prices were reloaded, and are only applied, not sent again. All at
        once, after what may fail: a repeated call must not apply anything twice."""
        records = [*known, *heard]
        if not all(map(catalogue.by_symbol.__contains__, {record.symbol for record in records} - {""})):
            await catalogue.load()
        histories = deque[History | None]()
        if SeriesBegan in set(map(type, records)):
            for record in records:
                if type(record) is SeriesBegan:
                    histories.append(await self._series_of(record))
                    # What waits belongs to the series before.
                    self.follow([record.symbol])
        self._apply(known, histories)
        at_once = self._waiting.split(heard, self.wanted, now_ms())
        self._apply(at_once, histories)
        for symbol, waiting in self._waiting.take_due(now_ms()):
            self._apply_waiting(symbol, waiting)
        self._listener.hear(at_once)

    async def _series_of(self, began: SeriesBegan) -> History | None:
        facts = catalogue.known(began.symbol)
        return None if facts is None else await load_series(facts, began.at_ms, simulated=began.simulated)

    def _apply(self, records: Sequence[AnyRecord], histories: deque[History | None]) -> None:
        """`histories` are those of the series that begin in the records."""
        for record in records:
            if type(record) is SeriesBegan and (fresh := histories.popleft()) is not None:
                self._prices.histories[record.symbol] = fresh
            if (facts := catalogue.known(record.symbol)) is not None:
                self._prices.apply(record, facts)

    def _apply_waiting(self, symbol: str, waiting: WaitingRecords | None) -> None:
        if waiting is None or not waiting.records:
            return
        if (facts := catalogue.known(symbol)) is not None:
            self._prices.apply_all(waiting.records, facts)
        self._listener.keep(symbol, waiting.records, waiting.came_ms)

    def _apply_all_waiting(self) -> None:
        for symbol in self._waiting.symbols:
            self._apply_waiting(symbol, self._waiting.take(symbol))

    def _apply_in_loop(self) -> None:
        """Prices belong to the loop. A page that reads one symbol mostly reads others too."""
        done = Future[None]()

        def apply() -> None:
            self._apply_all_waiting()
            done.set_result(None)

        # Where the loop has ended nothing more comes, and what is known is all that will be.
        with contextlib.suppress(RuntimeError, TimeoutError):
            if self._home is not None:
                self._home.call_soon_threadsafe(apply)
                done.result(LOOP_S)


bus_away = LastingFault(logger, "The bus is not heard, trying again")
database_away = LastingFault(logger, "The prices wait for the database")
BLOCK_MS = 1000
RETRY_S = 0.2
COUNT = 500

# What comes together costs once. A process without clients may answer with prices that are so old.
GATHER_S = 0.025

# An engine tells how it is doing each second.
QUIET_S = 5.0


class OutOfStep(Exception):
    """Records are missing, or the numbering restarted. It continues from what is written up to `needed`."""

    def __init__(self, why: str, needed: JournalPosition) -> None:
        super().__init__(why)
        self.needed = needed


class BusReader:
    """Reads the entries in order, and restarts from the database when some are missing."""

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
        """When the last entry was read; None once its absence is reported."""
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
            # What the database held was older than what was read before the prices were reloaded.
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
                self._listener.on_status(status)

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
