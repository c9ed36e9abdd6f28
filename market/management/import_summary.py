"""What `import_ticks` says at its end."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from market.engine.importing.tally import NAMED_EACH, Fault, Tally
from market.engine.store import moment

REASONS = {
    "malformed": "no line of this format",
    "not_finite": "a price or volume that is no number",
    "not_positive": "a price not above 0, or a volume below it",
    "crossed": "the ask is below the bid",
    "too_high": "a number that is too high",
    "future": "a time in the future",
    "older_than_last": "a time before that of the line above",
    "duplicate": "the same as the line above",
    "market_closed": "outside trading hours",
}


def told(fault: Fault) -> str:
    return f"{fault.path}, line {fault.line}: {REASONS.get(fault.reason, fault.reason)}"


def complaints(tally: Tally) -> Iterator[str]:
    """The bad lines, the first few of each reason by name."""
    yield from map(told, tally.named)
    for reason, count in tally.faults.items():
        if count > NAMED_EACH:
            yield f"… and {count - NAMED_EACH:,} more lines: {REASONS.get(reason, reason)}"


def summary(tally: Tally, symbol: str) -> Iterator[str]:
    span = ""
    if tally.span_ms:
        first_at, last_at = map(moment, tally.span_ms)
        span = f", {first_at:%Y-%m-%d %H:%M} to {last_at:%Y-%m-%d %H:%M} UTC"
    yield f"{symbol}: {tally.ticks:,} ticks made {tally.minutes:,} one-minute candles{span}."
    if bad := tally.faults.total():
        yield f"{bad:,} bad {'line was' if bad == 1 else 'lines were'} left out."
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
