"""The engine's journal on its way to web processes, over Redis, and what it holds while Redis is away."""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
from redis.exceptions import BusyLoadingError, RedisError

from core.background import cancel_and_wait
from core.clock import now_ms
from core.deadlines import patient
from core.fault_log import LastingFault
from core.redis.connections import connect_redis, key_of
from core.redis.replies import is_of_full
from market.engine.status import EngineStatus, encode_status, sign_of_life
from market.prices.records import AnyRecord, JournalPosition
from market.store.lease import LeaseLost

from .journal import (
    APPEND,
    CLAIM,
    HEAD,
    KEEP_MS,
    STATUS,
    STREAM,
    JournalWriter,
    decode,
    encode,
    new_epoch,
    number_of,
)

# How much the stream holds, and from which number on it has to stay.
# A reader that is further behind loads from the database: some minutes of a busy market.
MAX_ENTRIES, KEPT_BYTES = 50_000, 32 * 1024 * 1024

# What has to stay is at most so much; beyond it the engine takes no more ticks.
MOST_BYTES = 256 * 1024 * 1024

# What Redis needs for an entry beside what is in it.
ENTRY_BYTES = 48
KEEP_S, STEP_S = KEEP_MS / 1000, 10.0


class Step(msgspec.Struct):
    """Entries that follow each other, and go together."""

    began_s: float
    last: int
    ended_s: float
    size: int


class HeldEntries:
    """Entries younger than 120 s are kept, and so is everything that the database does not hold. If there is
    too much of the rest, the oldest goes first. Times are those of one clock that never goes back."""

    def __init__(self, max_entries: int = MAX_ENTRIES, kept_bytes: int = KEPT_BYTES) -> None:
        self._max_entries, self._kept_bytes = max_entries, kept_bytes
        self._steps = deque[Step]()
        self._size = self._last = 0
        self.first = 0
        """Before this number nothing has to stay."""

    def begin(self, last: int, size: int, now_s: float) -> None:
        """The arrival time of the entries up to `last` is unknown; `size` of them wait for the database."""
        self._steps = deque([Step(now_s, last, now_s, size)])
        self._size, self._last, self.first = size, last, 0

    def add(self, number: int, size: int, now_s: float) -> None:
        size += ENTRY_BYTES
        self._size, self._last = self._size + size, number
        step = self._steps[-1] if self._steps else None
        if step is not None and now_s - step.began_s < STEP_S:
            step.last, step.ended_s, step.size = number, now_s, step.size + size
        else:
            self._steps.append(Step(now_s, number, now_s, size))

    def trim(self, written: int, now_s: float, *, all_that_may: bool = False) -> None:
        """`written` is the last number that the database holds."""
        steps = self._steps
        while (
            steps
            and (
                all_that_may
                or self._size > self._kept_bytes
                or self._last - self.first + 1 > self._max_entries
            )
            and steps[0].last <= written
            and now_s - steps[0].ended_s > KEEP_S
        ):
            step = steps.popleft()
            self._size -= step.size
            self.first = step.last + 1

    @property
    def are_too_many(self) -> bool:
        """What has to stay alone, once the rest was trimmed."""
        return self._size > MOST_BYTES


logger = logging.getLogger(__name__)
bus_waits = LastingFault(logger, "The bus waits for Redis")
bus_full = LastingFault(logger, "The bus is full, and no more ticks are taken")

# Records that wait while Redis is away. Beyond it, the readers restart from the database.
MAX_WAITING = 100_000

# What Redis took last is remembered, in case it comes back without it: more than any reader is behind.
MAX_REMEMBERED = 5_000
ENTRIES_AT_ONCE = 1_000

# Redis may take this long to start: before that, what it holds is not given up. While it loads, there is no
# limit.
AWAITED_S = 30.0
FULL, AWAY = "full", "away"
RETRY_S = 0.25
PATIENCE_S = patient(2.0)
WINDOW_S = 0.002


class RedisBus:
    def __init__(
        self,
        url: str,
        awaited_s: float = AWAITED_S,
        held: HeldEntries | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._awaited_s, self._held, self._clock = awaited_s, held or HeldEntries(), clock
        self._keys = [key_of(name) for name in (STREAM, HEAD, STATUS)]
        self._redis = connect_redis(url, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S)
        # Any: the types of redis-py allow for its client without await too.
        self._append: Any = self._redis.register_script(APPEND)
        self._claim: Any = self._redis.register_script(CLAIM)
        self._writer: JournalWriter | None = None
        self.journal_position = JournalPosition("", 0)
        self._open: list[AnyRecord] = []
        self._sealed: deque[tuple[int, list[AnyRecord]]] = deque()
        self._sent: deque[tuple[int, list[AnyRecord]]] = deque(maxlen=MAX_REMEMBERED)
        """The last entries that Redis took."""
        self.waiting = 0
        """Records that Redis has not taken yet."""
        self._fault = ""
        """Why Redis took nothing when it was last asked."""
        self._status = b""
        """The newest of the engine, until Redis has it."""
        self._written = JournalPosition("", 0)
        self._lacks_until = 0
        """Up to here Redis, which had come back empty, has not all that the database lacks."""
        self._must_restart = False
        """Some of them were given up, or the stream is not claimed yet."""
        self._has_claimed = False
        self._wake = asyncio.Event()
        self._moved = asyncio.Event()
        """Set for a moment whenever fewer wait, or none will go any more."""
        self._task: asyncio.Task[None] | None = None

    async def open(self, writer: JournalWriter, position: JournalPosition) -> list[AnyRecord]:
        """Claim the stream; returns what was published after the position, or starts a new epoch."""
        self._has_claimed = False
        self._sent.clear()
        self._writer, self._wake, self._moved = writer, asyncio.Event(), asyncio.Event()
        self._written, self._lacks_until = position, 0
        tail = await self._await_tail(writer, position)
        if tail is None:
            self.journal_position = position
            await self.restart_numbering(writer)
        self._task = asyncio.create_task(self._send(writer), name="market bus")
        self._task.add_done_callback(lambda _: self._tell_those_who_wait())
        return tail or []

    async def restart_numbering(self, writer: JournalWriter) -> None:
        self._wake.set()
        with contextlib.suppress(RedisError, OSError):
            await self._start_anew(writer)

    def publish(self, records: list[AnyRecord]) -> None:
        self._open += records
        self.waiting += len(records)
        self._wake.set()
        if self.waiting > MAX_WAITING:
            self._drop()
            self._must_restart = True

    def tell(self, status: EngineStatus) -> None:
        """The whole status is under a key, and the stream only has a note of it."""
        self._status = encode_status(status)
        self.publish([sign_of_life(status)])

    def seal(self) -> JournalPosition:
        """Everything published so far gets a number; returns the last."""
        if self._open:
            epoch, number = self.journal_position
            self.journal_position = JournalPosition(epoch, number + 1)
            self._sealed.append((number + 1, self._open))
            self._open = []
        return self.journal_position

    def written(self, position: JournalPosition) -> None:
        """The stream keeps what it has: others may start from an older state."""
        self._written = position
        self._tell_those_who_wait()

    @property
    def is_whole(self) -> bool:
        """A caller that must wait until its records are kept asks `settle`."""
        return True

    @property
    def has_hole(self) -> bool:
        return False

    @property
    def fault(self) -> str:
        """Why what is published now may not be kept: `full` or `away`; empty if it is."""
        return self._fault or (FULL if self._held.are_too_many else "")

    async def settle(self) -> None:
        """Wait until a successor would know everything published so far."""
        position = self.seal()
        while not self._is_kept(position):
            if self._task is None or self._task.done():
                raise LeaseLost
            await self._moved.wait()

    def _is_kept(self, position: JournalPosition) -> bool:
        # A successor ignores the stream of a numbering that the database does not have. Once the database
        # has it, what was given up for that numbering is written too.
        if self._must_restart or self._written.epoch != self.journal_position.epoch:
            return False
        if self._written.number < self._lacks_until:
            return False
        has_left = not self._sealed or self._sealed[0][0] > position.number
        return has_left or position.epoch != self.journal_position.epoch

    async def close(self) -> None:
        await cancel_and_wait(self._task)
        self._task = None
        self.seal()
        with contextlib.suppress(RedisError, OSError, LeaseLost):
            while self._sealed and self._writer is not None:
                await self._send_first(self._writer)
        await self._redis.aclose()

    async def _await_tail(self, writer: JournalWriter, position: JournalPosition) -> list[AnyRecord] | None:
        """None if Redis has not all that the database lacks, or has not come up."""
        until_s = time.monotonic() + self._awaited_s
        while True:
            try:
                tail = await self._claim_and_read(writer, position)
                bus_waits.over()
                return tail
            except BusyLoadingError as error:
                bus_waits.tell(error)
            except (RedisError, OSError) as error:
                bus_waits.tell(error)
                if time.monotonic() > until_s:
                    logger.warning("The bus starts again: Redis has not come up within %g s", self._awaited_s)
                    return None
            await asyncio.sleep(RETRY_S)

    async def _claim_and_read(
        self, writer: JournalWriter, position: JournalPosition
    ) -> list[AnyRecord] | None:
        epoch, n = await self._claim(keys=self._keys, args=[writer.writer, "", 0, "", "any"])
        self._has_claimed = True
        if epoch is None or epoch.decode() != position.epoch or int(n) < position.number:
            return None
        reached = JournalPosition(position.epoch, int(n))
        found = await self._read(position, reached)
        if found is None:
            return None
        records, size = found
        self._held.begin(reached.number, size, self._clock())
        self.journal_position = reached
        return records

    async def between(self, position: JournalPosition, until: JournalPosition) -> list[AnyRecord] | None:
        """What was published after the one and up to the other; None if part of it is missing."""
        found = await self._read(position, until)
        return None if found is None else found[0]

    async def _read(
        self, position: JournalPosition, until: JournalPosition
    ) -> tuple[list[AnyRecord], int] | None:
        """The same with its size."""
        records: list[AnyRecord] = []
        last, size = position.number, 0
        if position.epoch != until.epoch or position.number > until.number:
            return None
        # Page by page: it may be of hours.
        while last < until.number:
            first, end = f"({last}-0", f"{until.number}-0"
            entries = await self._redis.xrange(self._keys[0], first, end, count=ENTRIES_AT_ONCE)
            for entry_id, fields in entries:
                last += 1
                if number_of(entry_id) != last or fields[b"e"].decode() != until.epoch:
                    return None
                records += decode(fields[b"d"])
                size += len(fields[b"d"])
            if not entries:
                return None
        return records, size

    def _drop(self) -> None:
        self._sealed.clear()
        self._open.clear()
        self.waiting = 0
        self._tell_those_who_wait()

    async def _start_anew(self, writer: JournalWriter) -> None:
        """The readers start from the database; what waited to be sent is in there too, or will be."""
        self._drop()
        self._sent.clear()
        # Until Redis has taken the claim.
        self._must_restart, self._lacks_until = True, 0
        # Greater than any number given before, by any engine: no stream has 10,000 entries a second for long.
        number = max(self.journal_position.number + 1, now_ms() * 10)
        self.journal_position = JournalPosition(new_epoch(), number)
        writer.flush_soon()
        # An engine that claimed the stream before may have been replaced. One that did not replaces another.
        whose = "own" if self._has_claimed else "any"
        args = [writer.writer, self.journal_position.epoch, number, "restart", whose]
        if await self._claim(keys=self._keys, args=args) == b"deposed":
            raise LeaseLost
        self._held.begin(number, 0, self._clock())
        self._has_claimed, self._must_restart = True, False

    async def _fill_up(self, writer: JournalWriter) -> None:
        """Redis came back empty or with an older state, and gets its last entries again: readers that had
        read them continue without a gap."""
        logger.warning("Redis came back without what it was sent last: %d entries go again", len(self._sent))
        first = (self._sent or self._sealed)[0][0]
        args = [writer.writer, self.journal_position.epoch, first - 1, "restart", "own"]
        if await self._claim(keys=self._keys, args=args) == b"deposed":
            raise LeaseLost
        self._held.begin(first - 1, 0, self._clock())
        self._lacks_until = first - 1
        self.waiting += sum(len(records) for _, records in self._sent)
        self._sealed.extendleft(reversed(self._sent))
        self._sent.clear()
        # Readers that are further behind start from the database.
        writer.flush_soon()

    def _tell_those_who_wait(self) -> None:
        self._moved.set()
        self._moved.clear()

    async def _send(self, writer: JournalWriter) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                while self._open or self._sealed or self._must_restart:
                    if not self._sealed:
                        self.seal()
                    await self._send_first(writer)
            except LeaseLost:
                logger.warning("Another engine has taken over the bus")
                writer.lose_lease()
                return
            except (RedisError, OSError) as error:
                await self._note_fault(error)
                await asyncio.sleep(RETRY_S)
                self._wake.set()
            except Exception:  # noqa: BLE001 - the top of a task: what broke is logged and tried again
                self._fault = AWAY
                logger.exception("The bus broke and goes on")
                await asyncio.sleep(RETRY_S)
                self._wake.set()
            else:
                self._fault = ""
                bus_waits.over()
                if self._held.are_too_many:
                    bus_full.tell(f"more than {MOST_BYTES} bytes are new, or wait for the database")
                else:
                    bus_full.over()
                # What comes within this time leaves together.
                await asyncio.sleep(WINDOW_S)

    async def _send_first(self, writer: JournalWriter) -> None:
        if self._must_restart:
            await self._start_anew(writer)
            return
        (number, records), status = self._sealed[0], self._status
        data, epoch = encode(records), self.journal_position.epoch
        args = [writer.writer, epoch, number, data, self._trimmed(), status]
        answer = await self._append(keys=self._keys, args=args)
        if answer == b"deposed":
            raise LeaseLost
        if answer in (b"empty", b"behind"):
            await self._fill_up(writer)
        elif self._sealed and self._sealed[0][0] == number:
            self._sent.append(self._sealed.popleft())
            self._held.add(number, len(data), self._clock())
            self._status = b"" if self._status is status else self._status
            self.waiting -= len(records)
            self._tell_those_who_wait()

    async def _note_fault(self, error: Exception) -> None:
        if not is_of_full(error):
            self._fault = AWAY
            bus_waits.tell(error)
            return
        self._fault = FULL
        bus_full.tell(error)
        with contextlib.suppress(RedisError, OSError):
            # To append would need memory before it trims.
            await self._redis.xtrim(self._keys[0], minid=self._trimmed(all_that_may=True), approximate=False)

    def _trimmed(self, *, all_that_may: bool = False) -> str:
        """The first entry that stays."""
        is_known = self._written.epoch == self.journal_position.epoch
        self._held.trim(self._written.number if is_known else 0, self._clock(), all_that_may=all_that_may)
        return f"{self._held.first}-0"
