"""How much of each component is in order, as a share of 1, seen from inside a process."""

from collections.abc import Callable, Iterable, Mapping

from instruments.catalogue import catalogue
from market import runtime as market
from market.streams.stream import Stream
from serving.draining import draining
from serving.findings import OK
from serving.metrics.http_requests import http_requests
from serving.readiness import monitor

from .models import NAMES

Shares = dict[str, float | None]
"""By component; None where there is nothing to judge."""

INTERNAL_ERROR = 4500
STOOD_STILL: Shares = dict.fromkeys(("rest", "market", "orderflow", "candles", "signals", "news"), 0.0)
"""Feeds and sources are not the process's own."""


class ComponentWatch:
    """Looks from inside a process: what lies between it and the reader is not seen."""

    def __init__(self) -> None:
        self.streams: tuple[Stream, ...] = ()
        self.sources: Callable[[], float | None] = nothing
        """Asks the database."""
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
        for stream in self.streams:
            works = market.is_heard() if stream.kind.is_numbered else has_database
            shares[stream.kind.name] = self._unbroken(stream) if works else 0.0
        self.latest |= shares
        return shares

    def look_at_feeds(self) -> float | None:
        share = fresh_share(map(market.state, catalogue.offered()))
        self.latest["feeds"] = share
        return share

    def look_at_sources(self) -> float | None:
        self.latest["sources"] = share = self.sources()
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


def nothing() -> None:
    return None


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
        """The mean of its looks. Those of earlier minutes, which nobody took, are dropped."""
        looks = self._seen.get(minute_ms, [])
        self._seen = {at: seen for at, seen in self._seen.items() if at > minute_ms}
        return {name: mean(looks, name) for name in NAMES} if looks else {}


def mean(looks: Iterable[Mapping[str, float | None]], name: str) -> float | None:
    known = [share for look in looks if (share := look.get(name)) is not None]
    return sum(known) / len(known) if known else None


component_watch = ComponentWatch()
