"""Signals that were closed on a day, judged again by the ticks of the archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from core.times import epoch_ms, epoch_ms_after
from signals_feed import exits
from signals_feed.exits import Exit, SignalLevels, by_minute, by_tick
from signals_feed.models import Evidence, Signal
from signals_feed.rules import Quoted, StoredMinute, exact_price

from . import files
from .minutes import is_imported
from .rebuild import ArchivedTick

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
    evidence = {row.kind: row for row in Evidence.objects.filter(signal=signal)}
    exit_ = evidence.get(Evidence.Kind.EXIT)
    entry = evidence.get(Evidence.Kind.ENTRY)
    if exit_ is None or entry is None:
        raise NotJudged("it is older than evidence")
    levels = levels_of(signal, entry)
    if exit_.source == Evidence.Source.CANDLE:
        fault, note = _judge_minute(signal, levels, exit_, days)
        return Judged(signal, fault or _check_result(signal), note)
    return Judged(signal, _judge_ticks(signal, levels, entry, exit_, days) or _check_result(signal))


def levels_of(signal: Signal, entry: Evidence) -> SignalLevels:
    since_ms = max(epoch_ms_after(entry.at), epoch_ms_after(signal.published_at))
    ends_at = min(signal.cancelled_at or signal.expires_at, signal.expires_at)
    ending = exits.CANCELLED if signal.cancel_reason else exits.EXPIRED
    terms = signal.direction, signal.stop_loss, signal.take_profit
    return SignalLevels(*terms, since_ms, epoch_ms_after(ends_at), ending)


def _judge_ticks(
    signal: Signal, levels: SignalLevels, entry: Evidence, exit_: Evidence, days: ArchivedDays
) -> str:
    low, high = sorted((float(levels.stop), float(levels.target)))
    last = (exit_.epoch, exit_.seq)
    for tick in _since(signal, levels, entry, exit_, days):
        is_last = (tick.epoch, tick.seq) == last
        price = tick.bid if levels.is_buy else tick.ask
        if is_last:
            return _compare_exit(signal, levels, exit_, tick)
        if not low < price < high:
            return f"tick {tick.seq} met a level before, at {price}"
    return f"tick {exit_.seq} of numbering {exit_.epoch}, which closed it, is not in the archive"


def _since(
    signal: Signal, levels: SignalLevels, entry: Evidence, exit_: Evidence, days: ArchivedDays
) -> Iterator[ArchivedTick]:
    """The ticks after the one it was published at."""
    day, last = levels_day(min(levels.since_ms, epoch_ms(entry.at))), levels_day(epoch_ms(exit_.at))
    while day <= last:
        for tick in days.ticks(signal.instrument.symbol, day):
            is_same = bool(entry.seq) and tick.epoch == entry.epoch
            if tick.seq > entry.seq if is_same else tick.time_ms > levels.since_ms:
                yield tick
        day += timedelta(days=1)


def levels_day(time_ms: int) -> date:
    return datetime.fromtimestamp(time_ms // 1000, UTC).date()


def _compare_exit(signal: Signal, levels: SignalLevels, exit_: Evidence, tick: ArchivedTick) -> str:
    quote = Quoted(exact_price(tick.bid), exact_price(tick.ask), tick.time_ms, tick.epoch, tick.seq)
    if (quote.bid, quote.ask) != (exit_.bid, exit_.ask):
        return f"tick {tick.seq} is {quote.bid}/{quote.ask}, its evidence says {exit_.bid}/{exit_.ask}"
    if exit_.rule == exits.CURRENT:
        # It ended by its time, by hand or by staff; no level was met before.
        price = exits.exit_price(signal.direction, quote.bid, quote.ask)
        made: Exit | None = Exit(price, signal.close_reason, exits.CURRENT)
    else:
        made = by_tick(levels, quote)
    return _differs(signal, exit_, made)


def _judge_minute(
    signal: Signal, levels: SignalLevels, exit_: Evidence, days: ArchivedDays
) -> tuple[str, str]:
    """A fault, and a note. After an outage a minute may be filled in, or imported, after the night."""
    opened_ms, symbol = epoch_ms(exit_.at), signal.instrument.symbol
    day = levels_day(opened_ms)
    row = days.minutes(symbol, day).get(opened_ms)
    if row is not None and not (fault := _judge_row(signal, levels, exit_, row)):
        return "", ""
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
    if fault_now := _judge_row(signal, levels, exit_, now):
        return fault if row is not None else fault_now, ""
    return "", "judged by its minute in the database, which was stored after the archive was made"


def _judge_row(signal: Signal, levels: SignalLevels, exit_: Evidence, row: files.ArchivedMinute) -> str:
    opened_ms = epoch_ms(exit_.at)
    digits = signal.instrument.digits
    prices = row.open, row.low, row.high, row.ask_low, row.ask_high
    rounded = [None if price is None else exact_price(round(price, digits)) for price in prices]
    minute = StoredMinute(opened_ms, *rounded)
    if row.basis == "mid":
        minute = minute._replace(bid_open=None, bid_low=None, bid_high=None)
    return _differs(signal, exit_, by_minute(levels, minute))


def _differs(signal: Signal, exit_: Evidence, made: Exit | None) -> str:
    if made is None:
        return "what closed it closes nothing"
    if made != (signal.close_price, signal.close_reason, exit_.rule):
        stored = f"{signal.close_reason} at {signal.close_price} ({exit_.rule})"
        return f"judged again it ends by {made.reason} at {made.price} ({made.rule}), stored is {stored}"
    return ""


def _check_result(signal: Signal) -> str:
    terms = signal.direction, signal.entry, signal.stop_loss, signal.tradable_price
    price = signal.close_price
    made = None if price is None else exits.result(*terms, price, signal.instrument.pip_size)
    # Staff may have given the instrument another pip since.
    if made is None or (made.pnl_percent, made.pnl_r) != (signal.pnl_percent, signal.pnl_r):
        return f"its result of {signal.pnl_percent} % does not follow from its prices"
    return ""
