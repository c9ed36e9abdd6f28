"""Runs the engine: its clock, its feeds, its writing. It owns the tasks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from math import inf

from django.db import Error, transaction

from core.background import cancel_and_wait
from core.clock import clock, go_on_from, now_ms
from core.contract.errors import Overloaded
from core.fault_log import LastingFault
from core.threads import in_thread
from instruments.catalogue import InstrumentFacts, catalogue
from instruments.kinds import DEMO
from market.engine.bus.journal import JournalPosition
from market.engine.bus.local_bus import LocalBus
from market.engine.bus.redis_bus import RedisBus
from market.engine.feeds.supervisor import FeedSupervisor, MakeFeed
from market.engine.store.candle_rows import Row
from market.engine.store.checkpoints import Checkpoint
from market.engine.store.lease import Lease, LeaseLost
from market.engine.store.loading import LoadedMarket, fill_simulated, load, load_series, tell_reloaded
from market.engine.store.series import change_kind, lock_series
from market.prices.candles import MINUTE_MS
from market.prices.records import Tick

from .engine import Engine
from .listeners import EngineListener, EngineStart, SeriesEnding
from .liveness import Lateness
from .push_queue import NothingKept
from .source import feeds_of
from .status import status_of, status_record
from .store import checkpoints, retention

logger = logging.getLogger(__name__)
lease_waits = LastingFault(logger, "The lease waits for the database")
candles_wait = LastingFault(logger, "The candles wait for the database")
candles_lost = LastingFault(logger, "The database was away too long")
CLOCK_S = 0.25
TELL_S = 1.0
FLUSH_S = 1.0
REPEATED_AT_ONCE = 1_000

# More than this waits for the database only when it has been away for hours; then the oldest go.
MAX_PENDING = 200_000
KEPT_ROWS = 2_000

# Written every second: a database that has taken nothing for so long takes nothing.
UNWRITTEN_S = 3.0


class Runner:
    """One engine with what keeps it going."""

    def __init__(
        self,
        engine: Engine,
        make_feed: MakeFeed,
        bus: LocalBus | RedisBus,
        listeners: Sequence[EngineListener] = (),
    ) -> None:
        self.engine = engine
        self.bus = bus
        self.listeners = listeners
        self.lease = Lease()
        self.feeds = FeedSupervisor(engine, make_feed, self.publish)
        self.lease_lost = asyncio.Event()
        """Another process writes now."""
        self.is_running = False
        """Between start and stop; before, it waits for the lease and knows nothing."""
        self._holds = False
        self._is_behind = False
        """Minutes of the time before the start are still to be made, and told the listeners."""
        self._lateness = Lateness(engine.grace_ms / 1000)
        self._steps = 0
        """How often the machine's clock was set, as far as that is told."""
        self._flush_now = asyncio.Event()
        self._written_s = 0.0
        """When the database took something last; never, if it refused since."""
        self._writing = threading.Lock()
        self._flushing, self._changing = asyncio.Lock(), asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def writer(self) -> str:
        return self.lease.writer

    async def wait_for_lease(self) -> None:
        while not await self.try_lease():  # noqa: ASYNC110 - it is the database that is asked
            await asyncio.sleep(FLUSH_S)

    async def try_lease(self) -> bool:
        try:
            self._holds = await in_thread(self.lease.take) is not None
        except (Error, Overloaded) as error:
            lease_waits.tell(error)
        else:
            lease_waits.over()
        return self._holds

    async def start(self) -> None:
        await self._beating(self._start)

    async def write_remains(self) -> None:
        """What an engine before this one published, and was killed before it wrote it."""
        await self._beating(self._go_on)
        await self.stop()

    async def _beating(self, act: Callable[[], Awaitable[None]]) -> None:
        """To load everything may take longer than a stand-in waits."""
        self.lease_lost.clear()
        beating = asyncio.create_task(self._keep_lease(), name="market lease")
        try:
            await act()
        finally:
            await cancel_and_wait(beating)

    async def _go_on(self) -> None:
        loaded: LoadedMarket = await in_thread(load, self.engine.prices, self.engine.default_feed)
        at_ms = now_ms()
        self.engine.resume(loaded.checkpoints, at_ms)
        tail = await self.bus.open(self, loaded.place)
        for number, record in enumerate(tail, 1):
            self.engine.repeat(record, at_ms)
            if number % REPEATED_AT_ONCE == 0:
                # It may be of hours, and the lease has to be kept meanwhile.
                await asyncio.sleep(0)
        last = [state.last.time_ms for state in self.engine.instruments.values() if state.last is not None]
        go_on_from(max(last, default=0))
        for listener in self.listeners:
            await listener.begin(EngineStart(lambda: self.bus.place.epoch, self._hold, tail))

    async def _start(self) -> None:
        self._is_behind = True
        await self._go_on()
        self._lateness = Lateness(self.engine.grace_ms / 1000)
        self.is_running = True
        # Before a feed sends anything: what its source is may have changed while no engine ran.
        await self.settle_kinds()
        await self._fill_simulated()
        self._is_behind = False
        self._written_s = time.monotonic()
        if self._holds and self._flush_now.is_set():
            # A numbering that begins anew is known to a successor before anything is acknowledged in it.
            await self.flush()
        self._run(self._keep_time, 0, "market clock")
        self._run(self._keep_telling, TELL_S, "market status")
        self._run(self._keep_writing, 0, "market store")
        self._tasks.append(asyncio.create_task(retention.keep_tidy(), name="market retention"))
        await self.feeds.start()

    async def stop(self) -> None:
        self.is_running = False
        # First, or one that lost its lease might take the lease again while its feeds hang up.
        await cancel_and_wait(*self._tasks)
        self._tasks.clear()
        await self.feeds.stop()
        self.publish()
        for listener in self.listeners:
            await listener.end()
        if self._holds:
            await self.flush()
        await self.bus.close()
        if self._holds:
            try:
                await in_thread(self.lease.leave)
            except (Error, Overloaded) as error:
                logger.warning("The lease runs out by itself: %s", error)
        self._holds = False
        self.engine.clear()

    def push(self, origin: str, ticks: list[Tick]) -> list[str | None]:
        """Ticks that somebody sent by himself, and may forget once they are taken."""
        if self._holds and not self.bus.is_whole and time.monotonic() - self._written_s > UNWRITTEN_S:
            raise NothingKept
        if clock.off_ms and ticks:
            clock.weigh(max(tick.time_ms for tick in ticks))
        reasons = self.engine.take(origin, ticks, now_ms())
        self.publish()
        return reasons

    def publish(self) -> None:
        """Publish what was decided."""
        if self.engine.records:
            records, self.engine.records = self.engine.records, []
            for listener in self.listeners:
                listener.hear(records)
            self.bus.publish(records)

    def flush_soon(self) -> None:
        self._flush_now.set()

    def lose_lease(self) -> None:
        self._holds = False
        self.lease_lost.set()

    async def settle_kinds(self) -> None:
        """Where simulated prices give way to real ones or real ones to simulated, one series ends and the
        other goes on. What cannot be done now is tried again with the next writing."""
        async with self._changing:
            for facts in catalogue.all():
                if not self.engine.is_to_change_kind(facts, now_ms()):
                    self.engine.take_up_again(facts, now_ms())
                elif self._holds:
                    try:
                        await self._change_kind(facts)
                    except (Error, Overloaded) as error:
                        logger.warning("%s waits for the database to be priced anew: %s", facts.symbol, error)
                    except LeaseLost:
                        self.lose_lease()

    async def _fill_simulated(self) -> None:
        """Minutes of the simulated market that went by while no engine ran: nobody was sent their ticks."""
        at_ms = now_ms()
        simulated = [facts for facts in catalogue.active() if self.engine.is_priced_by(DEMO, facts, at_ms)]
        if not simulated or not self._holds:
            return
        # What formed when the last engine ended is closed by now, and stays as it was sent.
        for facts in simulated:
            self.engine.end_until(self.engine.instrument(facts, at_ms), at_ms)
        filled: list[InstrumentFacts] = []
        try:
            if await self.flush():
                for facts in simulated:
                    # Before it is known whether there was anything: it may be written and fail then.
                    filled.append(facts)
                    if not await fill_simulated(self.engine, facts, at_ms):
                        filled.remove(facts)
        except (Error, Overloaded) as error:
            logger.warning("The simulated market goes on with a gap: %s", error)
        finally:
            if filled:
                await self._tell_filled(filled)

    async def _tell_filled(self, filled: list[InstrumentFacts]) -> None:
        try:
            for listener in self.listeners:
                await listener.stored({facts.symbol for facts in filled})
            self._is_behind = False
            if await self.flush() and not isinstance(self.bus, LocalBus):
                await in_thread(tell_reloaded, filled)
        except (Error, Overloaded) as error:
            logger.warning("The simulated minutes are not told yet: %s", error)

    async def _change_kind(self, facts: InstrumentFacts) -> None:
        engine, at_ms = self.engine, now_ms()
        state = engine.end_series(facts, at_ms)
        simulated = not state.simulated
        next_source = feeds_of(facts.source, facts.fallback, engine.default_feed)[0]
        ending = SeriesEnding(facts.symbol, state.last, state.seq, state.source, next_source)
        # All of the old series is written before the database says that it is over, and nothing after.
        async with self._flushing:
            if not await self._flush():
                return
            notes = [await listener.series_ends(ending) for listener in self.listeners]
            checkpoint = await in_thread(self._write_change, facts, at_ms, simulated, notes)
            history = await load_series(facts, at_ms, simulated=simulated)
            engine.begin_series(facts, history, checkpoint, at_ms)
        self.publish()
        logger.info("%s is priced by %s now, no longer by %s", facts.symbol, next_source, ending.source)

    def _write_change(
        self, facts: InstrumentFacts, at_ms: int, simulated: bool, notes: list[Callable[[], None]]
    ) -> Checkpoint:
        with self._writing, transaction.atomic():
            self._hold()
            lock_series(facts.id)
            for note in notes:
                note()
            return change_kind(facts, at_ms, simulated=simulated)

    async def flush(self) -> bool:
        """Write what is waiting; what could not be written waits for the next time."""
        async with self._flushing:
            return await self._flush()

    async def _flush(self) -> bool:
        engine = self.engine
        self.publish()
        rows, engine.rows = engine.rows, []
        changed, engine.changed = engine.changed, {}
        made = engine.checkpoints(changed.values())
        notes = [listener.notes(is_behind=self._is_behind) for listener in self.listeners]
        is_done = is_written = False
        place = self.bus.seal()
        try:
            await in_thread(self._write, rows, made, place, notes)
            is_done = is_written = True
            self._written_s = time.monotonic()
            self.bus.written(place)
            candles_wait.over()
            candles_lost.over()
        except LeaseLost:
            self._lost_lease(rows)
            is_done = True
        except (Error, Overloaded) as error:
            self._written_s = -inf
            candles_wait.tell(error)
        finally:
            # Also when this is cancelled: to write the same again changes nothing.
            if not is_done:
                self._put_back(rows)
                engine.changed = changed | engine.changed
        return is_written

    def _write(
        self,
        rows: list[Row],
        made: dict[int, Checkpoint],
        place: JournalPosition,
        notes: list[Callable[[], None]],
    ) -> None:
        """One after the other: a cancelled flush goes on in its thread."""
        with self._writing:
            checkpoints.write(rows, made, self.lease, place, notes)

    def _hold(self) -> None:
        if not self._holds:
            raise LeaseLost
        self.lease.hold()

    def _lost_lease(self, rows: list[Row]) -> None:
        if self._holds or rows:
            logger.warning("Another process writes the candles of this database; this one does not")
        self.lose_lease()

    def _forget_rows(self) -> None:
        """The writer writes them; should it end, what it had not written yet is here."""
        del self.engine.rows[:-KEPT_ROWS]

    def _put_back(self, rows: list[Row]) -> None:
        waiting = [*rows, *self.engine.rows]
        if len(waiting) > MAX_PENDING:
            candles_lost.tell(f"{len(waiting) - MAX_PENDING} candles are lost")
        self.engine.rows = waiting[-MAX_PENDING:]

    async def _keep_time(self) -> None:
        late_s, at_ms = self._lateness.look(time.monotonic()), now_ms()
        if clock.steps != self._steps:
            # What was told before is of another time.
            self._steps = clock.steps
            await self._keep_telling()
        if late_s < inf:
            self.engine.keep_time(at_ms, round(late_s * 1000))
            self.publish()
        # Minutes close on time: the next look is no later than the next of them.
        left_ms = MINUTE_MS - (at_ms - self.engine.grace_ms) % MINUTE_MS
        await asyncio.sleep(min(CLOCK_S, left_ms / 1000))

    async def _keep_lease(self) -> None:
        while self._holds:
            await asyncio.sleep(FLUSH_S)
            if self._holds and not await self.try_lease():
                self._lost_lease([])

    async def _keep_telling(self) -> None:
        """Apart from the writing: how it is doing is asked most while the database does not answer."""
        # Between processes only one may speak; an engine within its process speaks to that alone.
        if self._holds or isinstance(self.bus, LocalBus):
            writer = self.writer if self._holds else ""
            place, has_hole = self.bus.place, self.bus.has_hole
            status = status_of(self.engine, now_ms(), writer, place.epoch, clock, has_hole=has_hole)
            self.bus.publish([status_record(status)])

    async def _keep_writing(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_S):
                await self._flush_now.wait()
        self._flush_now.clear()
        if not self._holds and not await self.try_lease():
            self._forget_rows()
            return
        await self.flush()
        await self.settle_kinds()

    def _run(self, act: Callable[[], Awaitable[None]], pause_s: float, name: str) -> None:
        self._tasks.append(asyncio.create_task(_repeat(act, pause_s, name), name=name))


async def _repeat(act: Callable[[], Awaitable[None]], pause_s: float, name: str) -> None:
    while True:
        try:
            await act()
        except Exception:  # noqa: BLE001 - the top of a task: what broke is logged and tried again
            logger.exception("The %s broke and goes on", name)
            await asyncio.sleep(1)
        await asyncio.sleep(pause_s)
