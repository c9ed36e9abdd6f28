"""Reading the outbox: every process receives every control event within half a second, in commit order. How
long it may trust what it last read is decided here too."""

import asyncio
import contextlib
import inspect
import logging
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from channels.layers import get_channel_layer
from django.conf import settings
from prometheus_client import Gauge
from redis.exceptions import RedisError

from core.background import BackgroundLoop, cancel_and_wait, is_done_within
from core.contract.errors import Overloaded
from core.database import TRANSIENT, UNANSWERED
from core.deadlines import patient
from core.fault_log import LastingFault
from core.steady_clock import OwnTime
from core.threads import in_reserved_thread

from .kinds import ENDS_ACCESS, IN_TIME, EventKind
from .outbox import ChannelListener, ControlEvent, EventMessage, readers

# Whether what was learnt from events can be relied on: how old it is, and whether the database answers.
T = TypeVar("T")
POLL_S = 0.25

# Twice the interval between two readings of the clock: more is a standstill of the machine or of our loop.
LONGEST_STEP_S = 2 * POLL_S


class OutboxTrust:
    # If nothing could be read for this long, what was learnt from events no longer counts.
    STALE_AFTER_S = patient(1.5)
    # While the database is away, it counts for this long.
    TRUSTED_FOR_S: float = settings.KEYS_TRUSTED_FOR_S

    def __init__(self) -> None:
        self.is_running = False
        self.read_at = float("-inf")
        """All events before this moment are known."""
        self._unanswered: deque[float] = deque()
        """When the questions were asked that the database has not answered, the oldest first."""
        self._own_time = OwnTime(time.monotonic(), LONGEST_STEP_S)
        self._has_failed = False

    def begin(self) -> None:
        self.is_running, self.read_at = True, time.monotonic()
        self._has_failed, self._unanswered = False, deque()

    def end(self) -> None:
        self.is_running, self.read_at = False, float("-inf")

    @property
    def asked_at(self) -> float | None:
        """Since when the oldest unanswered question has waited, in our own time."""
        return self._unanswered[0] if self._unanswered else None

    def own_now(self) -> float:
        return self._own_time.pass_to(time.monotonic())

    async def keep_time(self) -> None:
        while True:
            self.own_now()
            await asyncio.sleep(POLL_S)

    @property
    def age_s(self) -> float:
        """For how long no event could be read."""
        return time.monotonic() - self.read_at

    @property
    def is_current(self) -> bool:
        return time.monotonic() - self.read_at < self.STALE_AFTER_S

    @property
    def is_database_away(self) -> bool:
        """It refuses, or has not answered for so long that callers should not wait for it."""
        asked_at = self.asked_at
        is_silent = asked_at is not None and self.own_now() - asked_at >= self.STALE_AFTER_S
        return self.is_running and (self._has_failed or is_silent)

    @property
    def may_be_trusted(self) -> bool:
        """Whether what was learnt from events counts: it is current, or the best there is. While a question
        is unanswered, the database may be away."""
        is_asked = self.is_database_away or self.asked_at is not None
        return self.is_current or (is_asked and self.age_s < self.TRUSTED_FOR_S)

    @property
    def is_trust_over(self) -> bool:
        """Nothing could be read for so long that what was learnt before no longer counts."""
        return self.is_running and not self.is_current and self.age_s >= self.TRUSTED_FOR_S

    async def ask(self, question: Callable[[], T]) -> T:
        """A caller that stops waiting leaves the question to its thread: it still counts as unanswered."""
        unanswered, asked = self._unanswered, asyncio.ensure_future(in_reserved_thread(question))
        unanswered.append(self.own_now())

        def answered(asked: asyncio.Future[T]) -> None:
            # One thread asks, so answers come in the order of the questions.
            unanswered.popleft()
            if unanswered is self._unanswered:
                self._has_failed = asked.cancelled() or asked.exception() is not None

        asked.add_done_callback(answered)
        return await asyncio.shield(asked)


logger = logging.getLogger(__name__)
events_wait = LastingFault(logger, "The control events wait, trying again")
late_wait = LastingFault(logger, "A control event waits, trying again")
BATCH = 500

# However many callers want to be sure that nothing is new, the database is queried at most this often.
SURE_EVERY_S = 0.02
SURE_WITHIN_S = patient(1.5)

# No later event is handled in this time, except urgent ones.
HANDLE_WITHIN_S = patient(5.0)
RETRY_S = 1.0

# After this time, the handler is waiting for something that never comes.
GIVE_UP_S = 120.0

AWAY = "The database is not responding at the moment. Try again shortly."

Handler = Callable[[dict[str, Any]], Awaitable[None] | None]
is_handling: ContextVar[bool] = ContextVar("handling a control event", default=False)


class Handling:
    """The handlers of one event, called once each, one after the other."""

    def __init__(self, event: EventMessage, handlers: Sequence[Handler]) -> None:
        self.event, self._left = event, list(handlers)
        self.is_seen = False
        """All are done, or continue in the background."""
        self._work: asyncio.Task[Exception | None] | None = None

    def work(self) -> asyncio.Task[Exception | None]:
        """Continues where it stopped. Returns the transient fault that stopped it, if any."""
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._run(), name=f"handlers of {self.event.kind}")
        return self._work

    async def _run(self) -> Exception | None:
        is_handling.set(True)
        while self._left:
            try:
                done = self._left[0](self.event.facts)
                if inspect.isawaitable(done):
                    async with asyncio.timeout(GIVE_UP_S):
                        await done
            except TRANSIENT as error:
                return error
            except Exception:  # noqa: BLE001 - one broken handler must not deafen the process
                logger.exception("A handler of %s failed at %s", self.event.kind, self.event.facts)
            del self._left[0]
        return None


class EventFeed(OutboxTrust):
    """Polls the outbox by position and calls the handlers of each kind, in commit order."""

    def __init__(self) -> None:
        super().__init__()
        self._handlers: dict[str, list[Handler]] = defaultdict(list)
        self._polling = BackgroundLoop(
            "control events",
            self.read,
            fault=events_wait,
            broke="The control events could not be read, trying again",
            before=self._until_due,
        )
        self._wake = asyncio.Event()
        self._one_read = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.tasks: list[asyncio.Task[None]] = []
        self._beside: set[asyncio.Task[Any]] = set()
        """Handlers that continue in the background."""
        self._listener = ChannelListener(self._hear)
        self.wake_ups = WakeUps(lambda: self._wake.set())
        self._last: ControlEvent | None = None
        """All events up to this one are handled."""
        self._newest: ControlEvent | None = None
        """The newest event when the database was found to have been restarted from empty or from a backup."""
        self._handling: Handling | None = None
        """The handling of the event after the last."""
        self._early: dict[int, Handling] = {}
        """That of later events, by position."""
        self._reads = 0
        self._began_at = float("-inf")
        self._is_incomplete = False

    def on(self, kind: EventKind, handler: Handler) -> None:
        self._handlers[kind].append(handler)

    @property
    def position(self) -> int:
        return 0 if self._last is None else self._last.position

    @property
    def is_cut_off(self) -> bool:
        """No revocation reaches this process, neither from the database nor over Redis."""
        return self.is_running and not self.is_current and not self._listener.is_connected

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        readers.add(self.look_now)
        self._wake, self._one_read = asyncio.Event(), asyncio.Lock()
        self._last = await in_reserved_thread(ControlEvent.objects.newest)
        self._handling = None
        self._early.clear()
        self.begin()
        self.tasks = [
            asyncio.create_task(self._polling.run(), name="control events"),
            asyncio.create_task(self.keep_time(), name="own time"),
            *self.wake_ups.run(),
        ]
        if url := settings.REDIS_URL:
            listening = self._listener.listen(url)
            self.tasks.append(asyncio.create_task(listening, name="control events over Redis"))

    async def stop(self) -> None:
        readers.discard(self.look_now)
        tasks, self.tasks = self.tasks, []
        await cancel_and_wait(*tasks)
        await cancel_and_wait(*self._beside)
        self._loop = None
        self.end()

    def look_now(self) -> None:
        """May be called from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._look_now)

    def _look_now(self) -> None:
        self._wake.set()
        self.wake_ups.wake_others()

    async def make_sure(self) -> None:
        """Return when everything committed before has been handled. One read serves all waiting callers; if
        the database does not answer, they are refused."""
        if is_handling.get():
            return
        if self.is_database_away:
            raise Overloaded(AWAY, retry_after=2)
        reading = asyncio.ensure_future(self.read(apart_s=SURE_EVERY_S))
        try:
            if not await is_done_within(reading, SURE_WITHIN_S):
                raise Overloaded(AWAY, retry_after=2)
            reading.result()
        except UNANSWERED:
            raise Overloaded(AWAY, retry_after=2) from None
        finally:
            reading.cancel()

    async def read(self, apart_s: float = 0.0) -> None:
        """Handle everything that is new. Calls made before a read begins share it."""
        reads = self._reads
        async with self._one_read:
            if self._reads > reads:
                if self._is_incomplete:
                    raise Overloaded(AWAY, retry_after=2)
                return
            # Calls that arrive until then share this read.
            await asyncio.sleep(max(0.0, self._began_at + apart_s - time.monotonic()))
            self._reads += 1
            self._began_at, self._is_incomplete = time.monotonic(), True
            await self._read_all()
            self._is_incomplete = False

    async def _until_due(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await self._wake.wait()
        self._wake.clear()

    async def _read_all(self) -> None:
        began_at = self._began_at
        is_more = True
        while is_more:
            events = await self.ask(self.next_events)
            is_more = len(events) > BATCH
            if self._last is not None:
                # The last event is read again, to see whether it is still there.
                if not (events and events[0].is_same_as(self._last)):
                    await self._begin_anew()
                    break
                del events[0]
            for event in events:
                await self._handle_next(event)
        self.read_at = max(self.read_at, began_at)

    async def _begin_anew(self) -> None:
        """Positions were given out a second time: after a restored backup, or on a late standby."""
        if self._handling is None or self._handling.event.kind != EventKind.BEGAN_ANEW:
            # Read before the handlers run their queries, so that later events are handled again.
            self._newest = await in_reserved_thread(ControlEvent.objects.newest)
            logger.error("The database has other control events than before: everything is read again")
            self._early.clear()
            self._handling = self._handling_of(EventMessage(kind=EventKind.BEGAN_ANEW))
        await self._see(self._handling, float("inf"))
        self._last, self._handling = self._newest, None

    def next_events(self) -> list[ControlEvent]:
        since = ControlEvent.objects.filter(position__gte=self.position).order_by("position")
        return list(since[: BATCH + 1])

    async def _handle_next(self, event: ControlEvent) -> None:
        """After a transient fault, the next read goes on with the handler that failed."""
        if not self._is_seen(event.message):
            self._handling = self._handling or self._handling_of(event.message)
            await self._see(self._handling, event.position)
        self._early.pop(event.position, None)
        self._last, self._handling = event, None

    def _handling_of(self, event: EventMessage) -> Handling:
        """One for each event, whichever way it came first."""
        # The position alone is not enough: others may use our Redis for a database of their own.
        for begun in (self._handling, self._early.get(event.position)):
            if begun is not None and begun.event == event:
                return begun
        return Handling(event, self._handlers[event.kind])

    def _is_seen(self, event: EventMessage) -> bool:
        return self._handling_of(event).is_seen

    async def _see(self, handling: Handling, position: float) -> None:
        """Wait until all handlers are done, or for long enough, while reading on in the outbox: whether the
        database is away decides what may be trusted, and events that end access do not wait for the handlers
        of others."""
        if await self._is_handled(handling, POLL_S):
            return
        ahead = self._look_ahead(handling.event.kind, position)
        looking = asyncio.create_task(ahead, name="control events ahead")
        try:
            await self._see_or_leave(handling, HANDLE_WITHIN_S - POLL_S)
        finally:
            await cancel_and_wait(looking)

    async def _look_ahead(self, kind: str, position: float) -> None:
        while True:
            asked_at = time.monotonic()
            with contextlib.suppress(*TRANSIENT):
                events = await self.ask(self.next_events)
                ahead = [event for event in events if event.position > position and event.kind in IN_TIME]
                for event in ahead:
                    await self._handle_early(event.message)
                is_whole = len(events) <= BATCH and all(self._is_seen(event.message) for event in ahead)
                if is_whole and kind not in (*ENDS_ACCESS, EventKind.BEGAN_ANEW):
                    self.read_at = asked_at
            await asyncio.sleep(POLL_S)

    async def _is_handled(self, handling: Handling, seconds: float) -> bool:
        """Whether all handlers are done in that time. A transient fault is raised, so that the caller tries
        again. A caller that is cancelled leaves the handlers at work."""
        work = self._keep(handling.work())
        if not (await asyncio.wait((work,), timeout=seconds))[0]:
            return False
        if fault := work.result():
            raise fault
        return True

    async def _see_or_leave(self, handling: Handling, seconds: float) -> None:
        if not await self._is_handled(handling, seconds) and not handling.is_seen:
            logger.warning(
                "The handlers of %s take longer and go on beside what follows", handling.event.kind
            )
            late = self._see_through(handling)
            self._keep(asyncio.create_task(late, name=f"late handlers of {handling.event.kind}"))
        handling.is_seen = True

    async def _see_through(self, handling: Handling) -> None:
        while fault := await self._keep(handling.work()):
            late_wait.tell(fault)
            await asyncio.sleep(RETRY_S)
        late_wait.over()

    def _keep(self, task: asyncio.Task[T]) -> asyncio.Task[T]:
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

    def _hear(self, event: EventMessage) -> None:
        """An event over Redis ends access at once, whether the database answers or not."""
        self._wake.set()
        if event.kind and event.position > self.position:
            self._keep(asyncio.create_task(self._handle_early(event), name="a control event over Redis"))

    async def _handle_early(self, event: EventMessage) -> None:
        """After a transient fault, the remaining handlers run when the outbox is read."""
        handling = self._handling_of(event)
        if event.position <= self.position or handling.is_seen:
            return
        if handling is not self._handling:
            self._early[event.position] = handling
        with contextlib.suppress(*TRANSIENT):
            await self.handle(event)

    async def handle(self, event: EventMessage) -> None:
        await self._see_or_leave(self._handling_of(event), HANDLE_WITHIN_S)


# Wake-ups over the channel layer, from process to process. What it loses, the next poll brings.
GROUP = "control-events"
# The loss of revocations over Redis is the warning; without wake-ups, events are a poll late.
wakes_wait = LastingFault(logger, "No wake-ups from other processes: control events are polled", logging.INFO)


class WakeUps:
    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._is_due = asyncio.Event()
        self.channel = ""
        """Where this process was last woken; empty until others can wake it."""
        self._hearing, self._sending = (
            BackgroundLoop(
                name,
                act,
                fault=wakes_wait,
                broke="Wake-ups failed",
                passing=(RedisError, OSError),
                again=RETRY_S,
            )
            for name, act in (("wake-ups", self._hear), ("waking others", self._send))
        )

    def run(self) -> list[asyncio.Task[None]]:
        self._is_due = asyncio.Event()
        return [asyncio.create_task(loop.run(), name=loop.name) for loop in (self._hearing, self._sending)]

    def wake_others(self) -> None:
        self._is_due.set()

    async def _hear(self) -> None:
        layer = get_channel_layer()
        channel = await layer.new_channel()
        await layer.group_add(GROUP, channel)
        self.channel = channel
        wakes_wait.over()
        while True:
            message = await layer.receive(channel)
            if message["by"] != channel:
                self._wake()

    async def _send(self) -> None:
        await self._is_due.wait()
        self._is_due.clear()
        await get_channel_layer().group_send(GROUP, {"type": "wake", "by": self.channel})


feed = EventFeed()

age = Gauge(
    "tickwire_control_events_age_seconds", "Since when no control event could be read.", registry=None
)
age.set_function(lambda: max(0.0, feed.age_s) if feed.age_s != float("inf") else 0.0)
cut_off = Gauge(
    "tickwire_control_events_cut_off",
    "1 where revocations come neither from the database nor over Redis: they may hold 15 minutes late here.",
    registry=None,
)
cut_off.set_function(lambda: feed.is_cut_off)
EVENT_METRICS = (age, cut_off)
