"""A web process beside a separate engine: its prices follow the bus, from a replica where there is one, and
wait where they must not be shown yet."""

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
from market.store.loading import load, load_series

from .journal import HEAD, KEEP_MS, STATUS, STREAM, RecordKeeper, RecordListener, decode, number_of

# What a web process need not look at when it comes: records of symbols that nobody wants.
WANTED_S, APART_S = 10.0, 1.0
"""A symbol is wanted for the longer time when somebody looks twice, at most and at least so far apart."""
LOOK_S = 1.0
LOOKED_AT_ONCE = 4

# Enough to be folded cheaply, and few enough to be still in the processor's cache.
MOST_PUT_OFF = 100

FollowedSymbols = Callable[[], Collection[str] | None]
"""Those that clients follow now; None: all."""


class WantedSymbols:
    """Those that clients follow or ask for again and again. Who looks once in a while, as metrics do, finds
    what there is, and no tick is taken in at once because of that."""

    def __init__(self, followed: FollowedSymbols) -> None:
        self._followed = followed
        self._looked_s: dict[str, float] = {}
        self._until_s: dict[str, float] = {}
        self._checked_s = 0.0
        self.has_all = False

    def __contains__(self, symbol: str) -> bool:
        return self.has_all or symbol in self._until_s

    @property
    def are_none(self) -> bool:
        return not self.has_all and not self._until_s

    def look(self, symbol: str, now_s: float) -> None:
        """From any thread."""
        passed_s = now_s - self._looked_s.get(symbol, 0.0)
        if passed_s > APART_S:
            self._looked_s[symbol] = now_s
            if passed_s <= WANTED_S:
                self.follow(symbol, now_s)

    def follow(self, symbol: str, now_s: float) -> None:
        self._until_s[symbol] = now_s + WANTED_S

    def check(self, now_s: float) -> None:
        """Once in a while, which of them are wanted no longer."""
        if now_s - self._checked_s < LOOK_S:
            return
        self._checked_s, followed = now_s, self._followed()
        self.has_all = followed is None
        for symbol, until_s in list(self._until_s.items()):
            if until_s < now_s and followed is not None and symbol not in followed:
                self._until_s.pop(symbol, None)


class PutOff:
    """The records of one symbol, in their order."""

    __slots__ = ("came_ms", "records")

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self.came_ms: list[int] = []

    def is_too_much(self, now_ms: int) -> bool:
        """Nobody is sent again what is older."""
        return bool(self.records) and (
            len(self.records) >= MOST_PUT_OFF or self.came_ms[0] < now_ms - KEEP_MS
        )


class PutOffRecords:
    """By symbol; a symbol that is wanted is not among them."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, PutOff] = OrderedDict()

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._of

    @property
    def symbols(self) -> list[str]:
        return [*self._of]

    def sift(self, records: Sequence[AnyRecord], wanted: WantedSymbols, now_ms: int) -> list[AnyRecord]:
        """Puts off what it may, and returns the others."""
        if wanted.has_all and not self._of:
            return list(records)
        known, others = self._of.get, list[AnyRecord]()
        for record in records:
            put_off = known(record.symbol)
            if put_off is None:
                # The engine speaks of itself without a symbol.
                if not record.symbol or record.symbol in wanted:
                    others.append(record)
                    continue
                put_off = self._of[record.symbol] = PutOff()
            put_off.records.append(record)
            put_off.came_ms.append(now_ms)
        return others

    def take(self, symbol: str) -> PutOff | None:
        return self._of.pop(symbol, None)

    def take_too_much(self, now_ms: int) -> list[tuple[str, PutOff]]:
        """Looks at a few symbols; the others have their turn at the next calls."""
        found = []
        for symbol, put_off in list(islice(self._of.items(), LOOKED_AT_ONCE)):
            self._of.move_to_end(symbol)
            if put_off.is_too_much(now_ms):
                self._of[symbol] = PutOff()
                found.append((symbol, put_off))
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
        """What the bus had at which time, and the replica has yet to hand on."""
        self._is_late = False
        self._loop = BackgroundLoop(
            "bus replica",
            self.look,
            fault=LastingFault(logger, "Nobody knows how late the replica of the bus is", logging.INFO),
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


# The prices of a web process follow the records of the bus: at once where somebody wants them, and
# otherwise when somebody does, or when too much waits.
NumberingListener = Callable[[str, Mapping[str, Checkpoint]], None]
"""Is given the epoch of the numbering, and where each instrument stands."""

# So long a thread waits for the loop, before it takes what is known.
AWAY_S = 1.0


class BusListener(NamedTuple):
    hear: RecordListener
    """Gets records after they were applied, and an empty list where those that came were all put off."""
    keep: RecordKeeper
    missed: NumberingListener
    followed: FollowedSymbols
    told: Callable[[bytes], None] = lambda status: None
    """Gets the engine's status where the reader was asked for it."""


class PriceFollower:
    def __init__(self, prices: Prices, listener: BusListener) -> None:
        self._prices, self._listener = prices, listener
        self.wanted, self._put_off = WantedSymbols(listener.followed), PutOffRecords()
        self._home: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def start(self) -> None:
        self._home, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._prices.before_looking = self.look

    def stop(self) -> None:
        self._prices.before_looking = None

    def look(self, symbol: str) -> None:
        """Somebody looks at it, in any thread."""
        self.wanted.look(symbol, time.monotonic())
        if symbol in self._put_off:
            if threading.get_ident() == self._thread:
                self._take_in(symbol, self._put_off.take(symbol))
            else:
                self._ask_loop()

    def follow(self, symbols: Iterable[str]) -> None:
        """A client is sent what comes of them from now on."""
        for symbol in symbols:
            self.wanted.follow(symbol, time.monotonic())
            self._take_in(symbol, self._put_off.take(symbol))

    def follow_all(self) -> None:
        self.wanted.has_all = True
        self._take_in_all()

    def begin(self, fresh: Prices, epoch: str, checkpoints: Mapping[str, Checkpoint]) -> None:
        """Everything anew: what was put off came before."""
        self._put_off.clear()
        self._prices.replace(fresh)
        self._listener.missed(epoch, checkpoints)

    async def take(self, known: Sequence[AnyRecord], heard: Sequence[AnyRecord]) -> None:
        """`known` were heard before the prices were loaded anew, and are only applied. All at once, after
        what may fail: what is taken again must not be applied twice."""
        records = [*known, *heard]
        if not all(map(catalogue.by_symbol.__contains__, {record.symbol for record in records} - {""})):
            await catalogue.load()
        begun = deque[History | None]()
        if SeriesBegan in set(map(type, records)):
            for record in records:
                if type(record) is SeriesBegan:
                    begun.append(await self._series_of(record))
                    # What was put off belongs to the series before.
                    self.follow([record.symbol])
        self._apply(known, begun)
        at_once = self._put_off.sift(heard, self.wanted, now_ms())
        self._apply(at_once, begun)
        for symbol, put_off in self._put_off.take_too_much(now_ms()):
            self._take_in(symbol, put_off)
        self._listener.hear(at_once)

    async def _series_of(self, began: SeriesBegan) -> History | None:
        facts = catalogue.known(began.symbol)
        return None if facts is None else await load_series(facts, began.at_ms, simulated=began.simulated)

    def _apply(self, records: Sequence[AnyRecord], begun: deque[History | None]) -> None:
        for record in records:
            if type(record) is SeriesBegan and (fresh := begun.popleft()) is not None:
                self._prices.histories[record.symbol] = fresh
            if (facts := catalogue.known(record.symbol)) is not None:
                self._prices.apply(record, facts)

    def _take_in(self, symbol: str, put_off: PutOff | None) -> None:
        if put_off is None or not put_off.records:
            return
        if (facts := catalogue.known(symbol)) is not None:
            self._prices.apply_all(put_off.records, facts)
        self._listener.keep(symbol, put_off.records, put_off.came_ms)

    def _take_in_all(self) -> None:
        for symbol in self._put_off.symbols:
            self._take_in(symbol, self._put_off.take(symbol))

    def _ask_loop(self) -> None:
        """Prices belong to the loop. Whoever looks at one symbol for a page mostly looks at others too."""
        done = Future[None]()

        def take_in_all() -> None:
            self._take_in_all()
            done.set_result(None)

        # Where the loop has ended nothing more comes, and what is known is all that will be.
        with contextlib.suppress(RuntimeError, TimeoutError):
            if self._home is not None:
                self._home.call_soon_threadsafe(take_in_all)
                done.result(AWAY_S)


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
