"""What a watcher reads from the database: active signals, the minutes nobody judged, hits that wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple
from uuid import UUID

import msgspec
from django.db.models import Q

from market.engine.series import present_kind
from market.imports import IMPORTED
from market.models import Candle
from signals_feed.closures import Closing, by_candle, levels_of
from signals_feed.judging import MINUTE_MS, Levels, Minute
from signals_feed.models import Evidence, Hit, Signal, WatchMark
from signals_feed.quotes import Quoted, moment, ms

from .minutes import Minutes

PRICES = ("open", "low", "high", "ask_low", "ask_high")


class Active(NamedTuple):
    id: UUID
    symbol: str
    instrument_id: int
    levels: Levels
    entry: Quoted | None
    """The quote it was published at; None for one of a time when none was kept."""


def read_active(ids: Collection[UUID] | None = None) -> list[Active]:
    """All of them, or those of the given ones that are active."""
    signals = Signal.objects.active()
    entries = Evidence.objects.filter(kind=Evidence.Kind.ENTRY, signal__status=Signal.Status.ACTIVE)
    if ids is not None:
        signals, entries = signals.filter(pk__in=ids), entries.filter(signal__in=ids)
    quotes = {
        pk: Quoted(bid, ask, ms(at), epoch, seq)
        for pk, bid, ask, at, epoch, seq in entries.values_list(
            "signal_id", "bid", "ask", "at", "epoch", "seq"
        )
        if bid is not None and ask is not None
    }
    return [active(signal, quotes.get(signal.pk)) for signal in signals.select_related("instrument")]


def active(signal: Signal, entry: Quoted | None) -> Active:
    levels = levels_of(signal, 0 if entry is None else entry.time_ms)
    return Active(signal.pk, signal.instrument.symbol, signal.instrument_id, levels, entry)


def judge_stored(found: Iterable[Active], since_ms: int, until_ms: dict[str, int]) -> list[Closing]:
    """By the minutes that opened at `since_ms` or later and ended by the moment that is given for the
    symbol."""
    by_instrument = defaultdict(list)
    for each in found:
        by_instrument[each.instrument_id, each.symbol].append(each)
    closings = []
    for (instrument_id, symbol), own in by_instrument.items():
        first_ms = max(since_ms, min(each.levels.since_ms for each in own))
        minutes = Minutes(read_minutes(instrument_id, first_ms, until_ms[symbol]))
        for each in own:
            if ended := minutes.first_exit(each.levels):
                closings.append(by_candle(each.id, *ended, seen=None))
    return closings


def read_minutes(instrument_id: int, since_ms: int, until_ms: int) -> list[Minute]:
    if since_ms + MINUTE_MS > until_ms:
        return []
    rows = (
        Candle.objects.filter(instrument=instrument_id, simulated=present_kind(instrument_id), timeframe="1m")
        .filter(opened_at__gte=moment(since_ms), opened_at__lte=moment(until_ms - MINUTE_MS))
        .exclude(Q(basis=Candle.Basis.TRADES) | Q(source=IMPORTED))
        .order_by("opened_at")
    )
    return [
        minute_of(basis, ms(at), *prices)
        for basis, at, *prices in rows.values_list("basis", "opened_at", *PRICES)
    ]


def minute_of(basis: str, opened_ms: int, *prices: object) -> Minute:
    minute = Minute(opened_ms, *prices)  # type: ignore[arg-type]
    if basis == Candle.Basis.MID:
        return minute._replace(bid_open=None, bid_low=None, bid_high=None)
    return minute


def read_mark_ms() -> int:
    """Up to where the stored minutes have been judged."""
    at = WatchMark.objects.values_list("watched_until", flat=True).first()
    return 0 if at is None else ms(at)


def read_hits() -> list[Closing]:
    """What another watcher saw and could not act upon any more."""
    Hit.objects.filter(signal__status=Signal.Status.CLOSED).delete()
    return [msgspec.convert(hit.closing, Closing) for hit in Hit.objects.order_by("pk")]


def write_notes(hits: list[Closing], watched_until_ms: int) -> None:
    if hits:
        open_ = set(
            Signal.objects.active().filter(pk__in=[hit.signal for hit in hits]).values_list("pk", flat=True)
        )
        Hit.objects.bulk_create(
            [
                Hit(signal_id=hit.signal, closing=msgspec.to_builtins(hit, str_keys=True))
                for hit in hits
                if hit.signal in open_
            ],
            ignore_conflicts=True,
        )
    if watched_until_ms:
        at = moment(watched_until_ms)
        if not WatchMark.objects.filter(pk=1).update(watched_until=at):
            WatchMark.objects.create(pk=1, watched_until=at)
