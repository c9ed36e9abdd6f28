"""Writes what the engine decided, as long as the lease is ours: candles, and where each instrument stands. A
thread of its own keeps the lease while the loop turns."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from math import inf

from django.db import connection, transaction

from core.database import UNANSWERED
from core.deadlines import patient
from core.fault_log import LastingFault
from core.threads import in_thread
from market.engine.bus.local_bus import LocalBus
from market.engine.bus.redis_bus import RedisBus
from market.prices.records import JournalPosition
from market.store import checkpoints
from market.store.candle_rows import CandleToWrite
from market.store.checkpoints import Checkpoint, FlowToWrite
from market.store.lease import Lease, LeaseLost, wait_for_end

from .engine import Engine
from .listeners import EngineListener

# The lease is kept from a thread of its own, because an event loop that is busy for a moment is no reason
# for another engine to take over. One that has stopped to turn is.
lease_waits = LastingFault(logging.getLogger(__name__), "The lease waits for the database")
LOOK_S = 0.5

# What is written each second beats as well.
BEAT_AFTER_S = 1.5
STANDS_STILL_S = patient(3.0)


class LeaseBeats:
    def __init__(self, lease: Lease, on_loss: Callable[[], None]) -> None:
        self._lease, self._on_loss = lease, on_loss
        self.turned_s = 0.0
        """When the loop turned last."""
        self._timer: asyncio.TimerHandle | None = None
        self._ended = threading.Event()

    def start(self) -> None:
        loop, self._ended = asyncio.get_running_loop(), threading.Event()
        self._turn(loop)
        beating = (loop, self._ended)
        threading.Thread(target=self._keep_beating, args=beating, name="market lease", daemon=True).start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._ended.set()

    def look(self, now_s: float) -> bool:
        """Beats if that is due; False if another process has the lease."""
        is_due = now_s - self._lease.beat_s > BEAT_AFTER_S and now_s - self.turned_s <= STANDS_STILL_S
        try:
            is_ours = not is_due or not self._lease.is_held or self._lease.beat_alone()
        except UNANSWERED as error:
            lease_waits.tell(error)
            return True
        lease_waits.over()
        return is_ours

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self.turned_s = time.monotonic()
        self._timer = loop.call_later(LOOK_S, self._turn, loop)

    def _keep_beating(self, loop: asyncio.AbstractEventLoop, ended: threading.Event) -> None:
        while not ended.wait(LOOK_S) and not loop.is_closed():
            is_ours = self.look(time.monotonic())
            connection.close()
            if not is_ours and not ended.is_set():
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._on_loss)


logger = logging.getLogger(__name__)
candles_wait = LastingFault(logger, "The candles wait for the database")
candles_lost = LastingFault(logger, "The database was away too long")
FLUSH_S = 1.0

# Of several that wait for one to end, all but one wait again.
TRIES = 3

# More than this waits for the database only when it has been away for hours; then the oldest go.
MAX_PENDING = 200_000
KEPT_ROWS = 2_000

# Written every second: a database that has taken nothing for so long takes nothing.
UNWRITTEN_S = 3.0


class EngineWriter:
    """`publish` passes on what the engine decided, so that it is published before it is written."""

    def __init__(
        self,
        engine: Engine,
        bus: LocalBus | RedisBus,
        listeners: Sequence[EngineListener],
        publish: Callable[[], None],
    ) -> None:
        self.engine, self.bus, self.listeners, self.publish = engine, bus, listeners, publish
        self.lease = Lease()
        self.lease_lost = asyncio.Event()
        """Another process writes now."""
        self.beats = LeaseBeats(self.lease, self._report_loss)
        self.is_behind = False
        """Minutes before the start are still to be made and passed to the listeners."""
        self.flushing = asyncio.Lock()
        self.flush_now = asyncio.Event()
        self._written_s = 0.0
        """When the database took something last; never, if it refused since."""
        self._in_database = threading.Lock()

    @property
    def writer(self) -> str:
        return self.lease.writer

    @property
    def is_refused(self) -> bool:
        """The database has taken nothing for longer than it may."""
        return time.monotonic() - self._written_s > UNWRITTEN_S

    async def wait_for_lease(self) -> None:
        while not await self.try_lease():  # noqa: ASYNC110 - it is the database that is asked
            await asyncio.sleep(LOOK_S)

    async def try_lease(self) -> bool:
        try:
            self.lease.is_held = await in_thread(self.lease.take) is not None
        except UNANSWERED as error:
            lease_waits.tell(error)
        else:
            lease_waits.over()
        return self.lease.is_held

    async def take_over(self) -> None:
        """Raises CommandError if another process continues to write. While the database does not answer, it
        may return without the lease, and `keep_writing` asks again."""
        for _ in range(TRIES):
            if await self.try_lease():
                return
            await in_thread(wait_for_end, self.lease)

    def lose_lease(self) -> None:
        self.lease.is_held = False
        self.lease_lost.set()

    async def leave(self) -> None:
        if self.lease.is_held:
            try:
                await in_thread(self.lease.leave)
            except UNANSWERED as error:
                logger.warning("The lease is left to expire: %s", error)
        self.lease.is_held = False

    def begin(self) -> None:
        self._written_s = time.monotonic()

    def flush_soon(self) -> None:
        self.flush_now.set()

    async def keep_writing(self) -> bool:
        """Once a second, or as soon as a caller asks; False if another process writes."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_S):
                await self.flush_now.wait()
        self.flush_now.clear()
        if not self.lease.is_held and not await self.try_lease():
            # The writer writes them; should it end, what it had not written yet is here.
            del self.engine.rows[:-KEPT_ROWS], self.engine.minute_flows[:-KEPT_ROWS]
            return False
        await self.flush()
        return True

    async def flush(self) -> bool:
        """Write what is waiting; what could not be written waits for the next time."""
        async with self.flushing:
            return await self.flush_alone()

    async def flush_alone(self) -> bool:
        """Only with the lock held, so that nothing is written after it."""
        engine = self.engine
        self.publish()
        rows, engine.rows = engine.rows, []
        flows, engine.minute_flows = engine.minute_flows, []
        changed, engine.changed = engine.changed, {}
        made = engine.checkpoints(changed.values())
        notes = [listener.notes(is_behind=self.is_behind) for listener in self.listeners]
        is_done = is_written = False
        position = self.bus.seal()
        try:
            await in_thread(self._write, rows, made, position, notes, flows)
            is_done = is_written = True
            self._written_s = time.monotonic()
            self.bus.written(position)
            candles_wait.over()
            candles_lost.over()
        except LeaseLost:
            self._report_loss(rows)
            is_done = True
        except UNANSWERED as error:
            self._written_s = -inf
            candles_wait.tell(error)
        finally:
            # Also when this is cancelled: to write the same again changes nothing.
            if not is_done:
                self._put_back(rows, flows)
                engine.changed = changed | engine.changed
                for state in changed.values():
                    state.absorption.is_kept = False
        return is_written

    def write_alone(self, write: Callable[[], Checkpoint]) -> Checkpoint:
        """In a thread and a transaction, as long as the lease is ours."""
        with self._in_database, transaction.atomic():
            self.lease.hold()
            return write()

    def _write(
        self,
        rows: list[CandleToWrite],
        made: dict[int, Checkpoint],
        position: JournalPosition,
        notes: list[Callable[[], None]],
        flows: list[FlowToWrite],
    ) -> None:
        """One after the other: a cancelled flush goes on in its thread."""
        with self._in_database:
            checkpoints.write(rows, made, self.lease, position, notes, flows)

    def _report_loss(self, rows: Sequence[CandleToWrite] = ()) -> None:
        if self.lease.is_held or rows:
            logger.warning("Another process writes the candles of this database; this one does not")
        self.lose_lease()

    def _put_back(self, rows: list[CandleToWrite], flows: list[FlowToWrite]) -> None:
        waiting = [*rows, *self.engine.rows]
        if len(waiting) > MAX_PENDING:
            candles_lost.tell(f"{len(waiting) - MAX_PENDING} candles are lost")
        self.engine.rows = waiting[-MAX_PENDING:]
        self.engine.minute_flows = [*flows, *self.engine.minute_flows][-MAX_PENDING:]
