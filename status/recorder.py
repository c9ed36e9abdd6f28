"""Writes down each minute that this process served, with an engine behind it, and how each component did."""

import asyncio
import contextlib
import logging
import secrets
from datetime import datetime, timedelta
from time import monotonic

from core.background import BackgroundLoop
from core.clock import now_ms
from core.database import UNANSWERED
from core.fault_log import EachFault
from core.threads import in_thread
from core.times import MINUTE_MS, moment
from market.prices import interval_start
from market.streams.market_streams import prices

from .models import ComponentMinute, Minute, ProcessReport
from .watch import STOOD_STILL, MinuteLooks, Shares, component_watch

logger = logging.getLogger(__name__)

MINUTES_KEPT = timedelta(days=31)
COMPONENT_MINUTES_KEPT = timedelta(days=91)
LOOK_EVERY_S = 5.0
# A process that looks later than this did not only have much to do.
LATE_LOOK_S = 2 * LOOK_EVERY_S

# Minutes that wait while the database is away; then the oldest are lost, and count as down.
MOST_WAITING = 24 * 60

# A little into the next minute, so that the last one is complete.
LATE_MS = 1_500


class MinuteRecorder:
    def __init__(self) -> None:
        self._process = secrets.token_hex(8)
        self.looks = MinuteLooks()
        self._looked_s: float | None = None
        self._gone_ms: int | None = None
        """Since when no process was there before this one."""
        self.waiting: dict[datetime, Shares] = {}
        """Minutes that are not written down yet."""
        looking = "How the components do could not be seen"
        self._looking = BackgroundLoop(
            "looks at components",
            self.look,
            fault=EachFault(logger, looking),
            broke=looking,
            passing=(),
            before=LOOK_EVERY_S,
        )
        self._loop = BackgroundLoop(
            "minutes served",
            self.note,
            fault=EachFault(logger, "A minute served was not written down"),
            broke="A minute served could not be written down",
            passing=UNANSWERED,
            before=until_minute_is_over,
        )

    async def start(self) -> None:
        # While the database is away, nobody can tell who was there before; the service starts all the same.
        with contextlib.suppress(*UNANSWERED):
            self._gone_ms = await in_thread(absent_since, now_ms())
        await self._looking.start()
        await self._loop.start()

    async def stop(self) -> None:
        await self._looking.stop()
        await self._loop.stop()

    async def look(self) -> None:
        at_ms, shares = now_ms(), component_watch.look()
        if shares is None:
            return
        before_s, self._looked_s = self._looked_s, monotonic()
        for ago_s in missed_looks(0.0 if before_s is None else self._looked_s - before_s):
            self.looks.add(interval_start(at_ms - round(1000 * ago_s), MINUTE_MS), STOOD_STILL)
        minute_ms = interval_start(at_ms, MINUTE_MS)
        if before_s is None:
            self._account_for_before(minute_ms, at_ms, shares)
        self.looks.add(minute_ms, shares)

    def _account_for_before(self, minute_ms: int, at_ms: int, shares: Shares) -> None:
        """What the process before saw of this minute is lost with it; that nobody was there is not."""
        if self._gone_ms is None:
            return
        for look_ms in range(minute_ms, at_ms, round(1000 * LOOK_EVERY_S)):
            self.looks.add(minute_ms, shares if look_ms < self._gone_ms else STOOD_STILL)

    async def note(self) -> None:
        # After standing still, this may be the first to go on.
        await self.look()
        await in_thread(self.write, now_ms())

    def write(self, at_ms: int) -> None:
        """Writes down the last full minute, as far as this process was there. Without an engine, prices stand
        still and nobody is served."""
        minute_ms = interval_start(at_ms, MINUTE_MS) - MINUTE_MS
        at, shares = moment(minute_ms), self.looks.take(minute_ms)
        self.write_components(at, shares)
        if shares.get("market"):
            measured = {"": prices.hub.latency.quantiles(at_ms), "age_": prices.hub.ages.quantiles(at_ms)}
            quantiles = {
                f"{since}p{share * 100:.0f}_ms": took_ms
                for since, took in measured.items()
                for share, took_ms in took.items()
            }
            minute = Minute(at=at, process=self._process, **quantiles)
            Minute.objects.bulk_create([minute], ignore_conflicts=True)
        if at.minute == 0:
            Minute.objects.prune(at - MINUTES_KEPT)
            ComponentMinute.objects.prune(at - COMPONENT_MINUTES_KEPT)

    def write_components(self, at: datetime, shares: Shares) -> None:
        """And the minutes before that the database was away in."""
        if shares:
            self.waiting[at] = shares
            shares["feeds"] = component_watch.look_at_feeds()
            shares["sources"] = component_watch.look_at_sources()
        while len(self.waiting) > MOST_WAITING:
            del self.waiting[min(self.waiting)]
        if self.waiting:
            ComponentMinute.objects.add(self.waiting)
            self.waiting = {}


def absent_since(at_ms: int) -> int | None:
    silent_s = ProcessReport.objects.silent_s() or 0.0
    return None if silent_s <= LATE_LOOK_S else at_ms - round(1000 * silent_s)


def missed_looks(since_s: float) -> list[float]:
    """How long ago a process that stood still, and served nobody, would have looked."""
    if since_s <= LATE_LOOK_S:
        return []
    return [number * LOOK_EVERY_S for number in range(1, int(since_s / LOOK_EVERY_S))]


async def until_minute_is_over() -> None:
    at_ms = now_ms()
    await asyncio.sleep((interval_start(at_ms, MINUTE_MS) + MINUTE_MS + LATE_MS - at_ms) / 1000)


recorder = MinuteRecorder()
