"""The archived ticks of a stretch of time, for the bundles of publishers."""

from __future__ import annotations

from datetime import date, timedelta

from archive.places import has_pyarrow
from archive.stores import archive_store
from signals_feed.exits import Tick
from signals_feed.record import Payload, ms_of

from .files import CheckedFile
from .signals import NotJudged, as_judged, day_of
from .verify import Proving

# Days are those of the sources' clocks, and ticks are asked for by when they were accepted.
APART_MS = 60_000
# Signals follow one another, and so do the days that are read for them.
MOST_OPEN = 3


def days_between(publish: Payload, since_ms: int, until_ms: int) -> tuple[date, date]:
    """The quote of the publication shows how far the clocks were apart."""
    quote = publish["evidence"]
    late_ms = ms_of(publish["published_at"]) - ms_of(quote["at"]) if quote else 0
    return day_of(since_ms - max(late_ms, 0) - APART_MS), day_of(until_ms - min(late_ms, 0) + APART_MS)


class ArchivedWindows:
    """For one bundle."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, date], CheckedFile] = {}

    def __call__(self, publish: Payload, since_ms: int, until_ms: int) -> list[Tick] | None:
        """None where not all of them are archived. An archive that is away is an OSError."""
        first, last = days_between(publish, since_ms, until_ms)
        found: list[Tick] = []
        try:
            for number in range((last - first).days + 1):
                file = self._file(str(publish["symbol"]), first + timedelta(number))
                found += map(as_judged, file.ticks((since_ms, until_ms)))
        except NotJudged:
            return None
        return sorted(found, key=lambda tick: (tick.accepted_ms, tick.seq))

    def _file(self, symbol: str, day: date) -> CheckedFile:
        file = self._open.get((symbol, day))
        if file is None:
            if not has_pyarrow():
                raise NotJudged("pyarrow is missing")
            file = Proving(archive_store(), day, (), has_database=False).file(symbol, day, "ticks")
            if not file.says_when_accepted:
                raise NotJudged(f"the file of {day} does not say when ticks were accepted")
            self._open[symbol, day] = file
            while len(self._open) > MOST_OPEN:
                self._open.pop(next(iter(self._open)))
        return file
