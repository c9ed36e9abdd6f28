"""How much of each component is in order, seen from inside a process, and the record of each minute that the
process served with an engine behind it."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from time import monotonic

from core.background import BackgroundLoop
from core.clock import now_ms
from core.database import UNANSWERED
from core.fault_log import EachFault
from core.threads import in_thread
from core.times import MINUTE_MS, moment
from instruments.catalogue import catalogue
from market import runtime as market
from market.prices import interval_start
from market.streams.consumer import Stream, all_streams
from market.streams.market_streams import prices
from serving.draining import draining
from serving.findings import OK, component_shares
from serving.metrics.http_requests import http_requests
from serving.readiness import monitor

from .models import NAMES, ComponentMinute, Minute, ProcessReport

logger = logging.getLogger(__name__)

Shares = dict[str, float | None]
"""By component; None where there is nothing to judge."""

INTERNAL_ERROR = 4500
STOOD_STILL: Shares = dict.fromkeys(("rest", "market", "orderflow", "candles", "signals", "news"), 0.0)
"""Feeds and sources are not the process's own."""


class ComponentWatch:
    """Looks from inside a process: what lies between it and the reader is not seen."""

    def __init__(self, streams: Sequence[Stream] = all_streams) -> None:
        self._streams = streams
        self.latest: Shares = {}
        """As of the last look, for the page that this process makes."""
        self._answered = self._failed = 0
        self._ended: dict[str, int] = {}

    def look(self) -> Shares | None:
        """None while the process starts or stops: others serve then."""
        if draining.is_on or not monitor.is_started:
            return None
        found = monitor.verdict()
        has_database = found.checks.get("database", OK) == OK
        shares: Shares = {"rest": self._rest() if has_database and not found.reasons else 0.0}
        for stream in self._streams:
            works = market.is_heard() if stream.kind.is_numbered else has_database
            shares[stream.kind.name] = self._unbroken(stream) if works else 0.0
        self.latest |= shares
        return shares

    def look_at_feeds(self) -> float | None:
        share = fresh_share(map(market.state, catalogue.offered()))
        self.latest["feeds"] = share
        return share

    def look_at_sources(self) -> float | None:
        """Asks the database."""
        ask = component_shares.get("sources")
        self.latest["sources"] = share = ask() if ask else None
        return share

    def _rest(self) -> float:
        answered, failed = http_requests.of_api()
        since_answered, since_failed = answered - self._answered, failed - self._failed
        self._answered, self._failed = answered, failed
        return 1 - since_failed / since_answered if since_answered else 1.0

    def _unbroken(self, stream: Stream) -> float:
        ended = stream.hub.closed[INTERNAL_ERROR]
        since = ended - self._ended.get(stream.kind.name, 0)
        self._ended[stream.kind.name] = ended
        return 1 - since / (since + stream.hub.members) if since else 1.0


def fresh_share(states: Iterable[str]) -> float | None:
    """None while all markets are closed."""
    due = [state for state in states if state != "closed"]
    return due.count("open") / len(due) if due else None


class MinuteLooks:
    """What was seen in each minute, until it is over."""

    def __init__(self) -> None:
        self._seen: dict[int, list[Shares]] = {}

    def add(self, minute_ms: int, shares: Shares) -> None:
        self._seen.setdefault(minute_ms, []).append(shares)

    def take(self, minute_ms: int) -> Shares:
        """The mean of its looks. Those of earlier minutes that were not taken are dropped."""
        looks = self._seen.get(minute_ms, [])
        self._seen = {at: seen for at, seen in self._seen.items() if at > minute_ms}
        return {name: mean(looks, name) for name in NAMES} if looks else {}


def mean(looks: Iterable[Mapping[str, float | None]], name: str) -> float | None:
    known = [share for look in looks if (share := look.get(name)) is not None]
    return sum(known) / len(known) if known else None


component_watch = ComponentWatch()


MINUTES_KEPT = timedelta(days=31)
COMPONENT_MINUTES_KEPT = timedelta(days=91)
LOOK_EVERY_S = 5.0
# A process that probes later than this was not merely busy.
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
        # While the database is away, it is unknown which process was there before; the service still starts.
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
        """What the process before saw of this minute is lost with it; that no process was there is not."""
        if self._gone_ms is None:
            return
        for look_ms in range(minute_ms, at_ms, round(1000 * LOOK_EVERY_S)):
            self.looks.add(minute_ms, shares if look_ms < self._gone_ms else STOOD_STILL)

    async def note(self) -> None:
        # After a standstill, this may be the first to continue.
        await self.look()
        await in_thread(self.write, now_ms())

    def write(self, at_ms: int) -> None:
        """Writes down the last full minute, as far as this process was there. Without an engine, prices stand
        still and no client is served."""
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
        """Also writes the minutes in which the database was away."""
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
    """How long ago a process that stood still, and served no client, should have probed."""
    if since_s <= LATE_LOOK_S:
        return []
    return [number * LOOK_EVERY_S for number in range(1, int(since_s / LOOK_EVERY_S))]


async def until_minute_is_over() -> None:
    at_ms = now_ms()
    await asyncio.sleep((interval_start(at_ms, MINUTE_MS) + MINUTE_MS + LATE_MS - at_ms) / 1000)


recorder = MinuteRecorder()
