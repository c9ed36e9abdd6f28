"""Reading the outbox: every process hears of every control event within half a second."""

import asyncio
import contextlib
import logging
import time

from django.conf import settings
from prometheus_client import Gauge

from core.background import BackgroundLoop, cancel_and_wait
from core.contract.errors import Overloaded
from core.database import TRANSIENT, UNANSWERED
from core.fault_log import LastingFault
from core.own_time import is_done_within
from core.threads import in_reserved_thread

from .channel import ChannelListener, EventMessage, let_sleep, wake_after_commits
from .handlers import Handler, Handlers, Handling, is_handling
from .kinds import ENDS_ACCESS, IN_TIME, EventKind
from .outbox import ControlEvent
from .trust import POLL_S, OutboxTrust

logger = logging.getLogger(__name__)
events_wait = LastingFault(logger, "The control events wait, trying again")
BATCH = 500

# However many want to be sure that nothing is new, the database is asked no more often than this.
SURE_EVERY_S = 0.02
SURE_WITHIN_S = 1.5

AWAY = "The database does not answer just now. Try again shortly."


class EventFeed(OutboxTrust):
    """Polls the outbox by position and calls the handlers of each kind, in commit order."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers = Handlers()
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
        self._told: set[asyncio.Task[None]] = set()
        self._listener = ChannelListener(self._hear)
        self._last: ControlEvent | None = None
        """All events up to this one are handled."""
        self._newest: ControlEvent | None = None
        """The newest event when the database was found to have begun anew."""
        self._handling: Handling | None = None
        """The handling of the event after the last."""
        self._early: dict[int, EventMessage] = {}
        """Later events, by position, that all handlers have already had."""
        self._reads = 0
        self._began_at = float("-inf")
        self._is_incomplete = False

    def on(self, kind: EventKind, handler: Handler) -> None:
        self.handlers.on(kind, handler)

    @property
    def position(self) -> int:
        return 0 if self._last is None else self._last.position

    @property
    def is_cut_off(self) -> bool:
        """No revocation reaches this process, neither from the database nor over Redis."""
        return self.is_running and not self.is_current and not self._listener.is_connected

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        wake_after_commits(self.look_now)
        self._wake, self._one_read = asyncio.Event(), asyncio.Lock()
        self._last = await in_reserved_thread(ControlEvent.objects.newest)
        self._handling = None
        self._early.clear()
        self.begin()
        self.tasks = [
            asyncio.create_task(self._polling.run(), name="control events"),
            asyncio.create_task(self.keep_time(), name="own time"),
        ]
        if settings.REDIS_URL:
            told = self._listener.listen(settings.REDIS_URL)
            self.tasks.append(asyncio.create_task(told, name="control events over Redis"))

    async def stop(self) -> None:
        let_sleep(self.look_now)
        tasks, self.tasks = self.tasks, []
        await cancel_and_wait(*tasks, *self._told)
        await self.handlers.stop()
        self._loop = None
        self.end()

    def look_now(self) -> None:
        """May be called from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake.set)

    async def make_sure(self) -> None:
        """Return when everything committed before has been heard. One read serves all callers that wait;
        where the database does not answer, they are refused."""
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
        """Hand on everything that is new. Calls made before a read begins share it."""
        reads = self._reads
        async with self._one_read:
            if self._reads > reads:
                if self._is_incomplete:
                    raise Overloaded(AWAY, retry_after=2)
                return
            # Calls that come meanwhile share this read.
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
                await self._hand_on(event)
        self.read_at = max(self.read_at, began_at)

    async def _begin_anew(self) -> None:
        """Positions were given out a second time: after a restored backup, or on a late standby."""
        if self._handling is None or self._handling.kind != EventKind.BEGAN_ANEW:
            # Read before the handlers ask, so that what follows is heard again.
            self._newest = await in_reserved_thread(ControlEvent.objects.newest)
            logger.error("The database has other control events than before: all is asked for anew")
            self._handling = self.handlers.begin(EventKind.BEGAN_ANEW, {})
            self._early.clear()
        await self._see(self._handling, float("inf"))
        self._last, self._handling = self._newest, None

    def next_events(self) -> list[ControlEvent]:
        since = ControlEvent.objects.filter(position__gte=self.position).order_by("position")
        return list(since[: BATCH + 1])

    async def _hand_on(self, event: ControlEvent) -> None:
        """After a transient fault, the next read goes on with the handler that failed."""
        # The position alone is not enough: others may use our Redis for a database of their own.
        if self._early.pop(event.position, None) != EventMessage(event.position, event.kind, event.facts):
            self._handling = self._handling or self.handlers.begin(event.kind, event.facts)
            await self._see(self._handling, event.position)
        self._last, self._handling = event, None

    async def _see(self, handling: Handling, position: float) -> None:
        """The outbox is read on meanwhile: whether the database is away decides what may be trusted, and
        events that end somebody's access do not wait for the handlers of others."""
        looking = asyncio.create_task(self._look_ahead(handling.kind, position), name="control events ahead")
        try:
            await self.handlers.see(handling)
        finally:
            await cancel_and_wait(looking)

    async def _look_ahead(self, kind: str, position: float) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            asked_at = time.monotonic()
            try:
                events = await self.ask(self.next_events)
            except TRANSIENT:
                continue
            ahead = [event for event in events if event.position > position and event.kind in IN_TIME]
            for event in ahead:
                if event.position not in self._early:
                    await self._hand_on_early(EventMessage(event.position, event.kind, event.facts))
            is_whole = len(events) <= BATCH and all(event.position in self._early for event in ahead)
            if is_whole and kind not in (*ENDS_ACCESS, EventKind.BEGAN_ANEW):
                self.read_at = asked_at

    def _hear(self, told: EventMessage) -> None:
        """An event over Redis ends somebody's access at once, whether the database answers or not."""
        self._wake.set()
        if told.kind and told.position > self.position:
            task = asyncio.create_task(self._hand_on_early(told), name="a control event over Redis")
            self._told.add(task)
            task.add_done_callback(self._told.discard)

    async def _hand_on_early(self, told: EventMessage) -> None:
        try:
            await self.handlers.see(self.handlers.begin(told.kind, told.facts))
        except TRANSIENT:
            # All handlers hear of it again when the outbox is read.
            return
        if told.position > self.position:
            self._early[told.position] = told


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
