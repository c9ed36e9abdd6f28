"""Signals that were closed on a day, judged again by the ticks of the archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from core.times import epoch_ms, moment
from signals_feed.checking import stored_record
from signals_feed.contradictions import contradictions
from signals_feed.exits import Minute, Tick
from signals_feed.models import Evidence, Signal
from signals_feed.record import FILL, RULES, Payload, tick_of
from signals_feed.rules import exact_price

from . import files
from .files import ArchivedTick, is_imported

Minutes = Mapping[int, files.ArchivedMinute]


class NotJudged(Exception):
    """A day between is not in the archive, or not all of it."""


class Judged(NamedTuple):
    signal: Signal
    fault: str
    """A sentence; empty where the result is the same."""
    note: str = ""


class ArchivedDays(NamedTuple):
    """How the archive is asked, by symbol and day."""

    ticks: Callable[[str, date], list[ArchivedTick]]
    """Raises NotJudged where they are not there, or not all."""
    minutes: Callable[[str, date], Minutes]
    stored: Callable[[str, date], Minutes]
    """What the database has by now."""


def closed_on(day: date) -> list[Signal]:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    closed = Signal.objects.filter(closed_at__gte=start, closed_at__lt=start + timedelta(days=1))
    return list(closed.select_related("instrument").order_by("closed_at", "pk"))


def judge_again(signal: Signal, days: ArchivedDays) -> Judged:
    record, entry, exit_ = stored_record(signal)
    if entry is None or (exit_ is None and signal.rules != RULES):
        raise NotJudged("it is older than evidence")
    if exit_ is not None and exit_.source == Evidence.Source.CANDLE:
        return Judged(signal, *_judge_minute(signal, record, exit_, days))
    return Judged(signal, "; ".join(contradictions(record, _ticks(signal, entry, exit_, days))))


def _ticks(signal: Signal, entry: Evidence, exit_: Evidence | None, days: ArchivedDays) -> Iterator[Tick]:
    """All of them. By the rules of before those are enough at which it may have ended: a level is met, or its
    evidence says so."""
    until = exit_.at if exit_ else signal.closed_at or signal.published_at
    last, is_buy = (exit_.epoch, exit_.seq) if exit_ else ("", 0), signal.direction == "buy"
    low, high = sorted((float(signal.stop_loss), float(signal.take_profit)))
    for tick in _archived(signal, min(entry.at, signal.published_at), until, days):
        is_met = not low < (tick.bid if is_buy else tick.ask) < high
        if signal.rules == RULES or is_met or (tick.epoch, tick.seq) == last:
            yield as_judged(tick)


def as_judged(tick: ArchivedTick) -> Tick:
    known = tick.accepted_ms or 0, tick.feed or "", tick.settled is not False, tick.unsettled_ms or 0
    return Tick(exact_price(tick.bid), exact_price(tick.ask), tick.time_ms, tick.epoch, tick.seq, *known)


def _archived(signal: Signal, since: datetime, until: datetime, days: ArchivedDays) -> Iterator[ArchivedTick]:
    day, last = day_of(epoch_ms(since)), day_of(epoch_ms(until))
    while day <= last:
        yield from days.ticks(signal.instrument.symbol, day)
        day += timedelta(days=1)


def day_of(time_ms: int) -> date:
    return datetime.fromtimestamp(time_ms // 1000, UTC).date()


def _judge_minute(
    signal: Signal, record: Sequence[Payload], exit_: Evidence, days: ArchivedDays
) -> tuple[str, str]:
    """A fault, and a note. After an outage a minute may be filled in, or imported, after the night."""
    opened_ms, symbol = epoch_ms(exit_.at), signal.instrument.symbol
    day = day_of(opened_ms)
    row, (filled, note) = days.minutes(symbol, day).get(opened_ms), _filled(signal, record, days)
    if row is not None and not (fault := _judge_row(signal, record, filled, opened_ms, row)):
        return "", note
    stored = days.stored(symbol, day)
    now = stored.get(opened_ms)
    if row is None:
        if not stored:
            raise NotJudged(
                "the minute that closed it came after the night, and the database has it no longer"
            )
        fault = "the minute that closed it is neither in the archive nor in the database"
    if now is None or (row is not None and not is_imported(now)):
        return fault, ""
    if fault_now := _judge_row(signal, record, filled, opened_ms, now):
        return fault if row is not None else fault_now, ""
    return "", "judged by its minute in the database, which was stored after the archive was made"


def _filled(signal: Signal, record: Sequence[Payload], days: ArchivedDays) -> tuple[list[Tick], str]:
    """The ticks up to that of its fill, or this alone with a note."""
    fill = next((tick_of(each["evidence"]) for each in record if each["kind"] == FILL), None)
    if fill is None:
        return [], ""
    try:
        since = min(signal.published_at, moment(fill.time_ms))
        ticks = map(as_judged, _archived(signal, since, moment(fill.time_ms), days))
        return [tick for tick in ticks if tick.accepted_ms <= fill.accepted_ms], ""
    except NotJudged as error:
        return [fill], f"its fill is not judged again: {error}"


def _judge_row(
    signal: Signal,
    record: Sequence[Payload],
    filled: Sequence[Tick],
    opened_ms: int,
    row: files.ArchivedMinute,
) -> str:
    digits = signal.instrument.digits
    prices = row.open, row.low, row.high, row.ask_low, row.ask_high
    rounded = [None if price is None else exact_price(round(price, digits)) for price in prices]
    minute = Minute(opened_ms, *rounded)
    if row.basis == "mid":
        minute = minute._replace(bid_open=None, bid_low=None, bid_high=None)
    return "; ".join(contradictions(record, [*filled, minute], is_whole=False))
