"""The result of an import: counts, the lines to name, and the summary that `import_ticks` prints."""

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from core.times import moment

# A weekend in a file of ticks would otherwise be reported line by line.
NAMED_EACH = 10


class LineFault(NamedTuple):
    path: str
    line: int
    reason: str
    """"malformed", or why it was refused."""


class StoppedAtFault(Exception):
    """A strict import ends at the first bad line."""

    def __init__(self, fault: LineFault) -> None:
        self.fault = fault


class ImportTally:
    def __init__(self) -> None:
        self.ticks = 0
        """Bars among them."""
        self.kinds: set[str] = set()
        """What they were: ticks, bars."""
        self.minutes = 0
        self.of_venue = 0
        """Minutes that were left to the venue of the last quote."""
        self.gaps = 0
        self.faults: Counter[str] = Counter()
        self.named: list[LineFault] = []
        """The first few of each reason."""
        self.left: set[tuple[str, int]] = set()
        """Coarser candles, by timeframe and opening, that stay without what was imported into them."""
        self.span_ms: tuple[int, int] | None = None
        """The first and the last stored minute."""

    def count(self, faults: Iterable[LineFault]) -> None:
        for fault in faults:
            self.faults[fault.reason] += 1
            if self.faults[fault.reason] <= NAMED_EACH:
                self.named.append(fault)

    def stored(self, first_ms: int, last_ms: int, minutes: int) -> None:
        since_ms, until_ms = self.span_ms or (first_ms, last_ms)
        # The minute in which the previous file ended continues in this one.
        self.minutes += minutes - (until_ms == first_ms and self.minutes > 0)
        self.span_ms = min(since_ms, first_ms), max(until_ms, last_ms)


REASONS = {
    "malformed": "no line of this format",
    "not_finite": "a price or volume that is not a number",
    "not_positive": "a price not above 0, or a volume below it",
    "crossed": "the ask is below the bid",
    "too_high": "a number that is too high",
    "future": "a time in the future",
    "older_than_last": "a time before that of the line above",
    "duplicate": "the same as the line above",
    "market_closed": "outside trading hours",
}


def fault_line(fault: LineFault) -> str:
    return f"{fault.path}, line {fault.line}: {REASONS.get(fault.reason, fault.reason)}"


def complaints(tally: ImportTally) -> Iterator[str]:
    """The bad lines, the first few of each reason by name."""
    yield from map(fault_line, tally.named)
    for reason, count in tally.faults.items():
        if count > NAMED_EACH:
            yield f"… and {count - NAMED_EACH:,} more lines: {REASONS.get(reason, reason)}"


def summary(tally: ImportTally, symbol: str) -> Iterator[str]:
    span = ""
    if tally.span_ms:
        first_at, last_at = map(moment, tally.span_ms)
        span = f", {first_at:%Y-%m-%d %H:%M} to {last_at:%Y-%m-%d %H:%M} UTC"
    kinds = " and ".join(sorted(tally.kinds, reverse=True)) or "ticks"
    yield f"{symbol}: {tally.ticks:,} {kinds} made {tally.minutes:,} one-minute candles{span}."
    if bad := tally.faults.total():
        yield f"{bad:,} bad {'line was' if bad == 1 else 'lines were'} left out."
    if many := tally.of_venue:
        minutes = "minute was" if many == 1 else "minutes were"
        yield (
            f"{many:,} {minutes} left to the venue of the last quote, which is asked for what it had since: "
            "its minutes judge signals. Import the files again once it is back, if any are still missing."
        )
    if gaps := tally.gaps:
        yield (
            f"{gaps:,} {'gap' if gaps == 1 else 'gaps'} of more than a trading day left empty: "
            "the files lack ticks there."
        )
    if many := len(tally.left):
        timeframe, opened_ms = min(tally.left, key=itemgetter(1))
        stay = "candle stays as it was" if many == 1 else "candles stay as they were"
        yield (
            f"{many:,} coarser {stay}, the first at {moment(opened_ms):%Y-%m-%d %H:%M} ({timeframe}): the "
            "one-minute candles of that time were dropped for their age, and the files hold only a part of "
            "them. Files with all of that time replace what is there."
        )
