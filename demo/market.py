"""The simulated market's past is started once, and removed with the demo.

While the service is down no past is made: the engine fills that gap at its start, because only it knows what
had been sent.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import Exists, OuterRef

from core.times import MINUTE_MS, epoch_ms, moment
from instruments.catalogue import catalogue
from instruments.facts import DEMO, InstrumentFacts, default_feed, feeds_of
from market.engine import SeriesEnding
from market.models import (
    AbsorptionWindows,
    Candle,
    EngineState,
    FormerQuote,
    FormingMinute,
    LastQuote,
    OrderFlowMinute,
    UnfinishedPast,
)
from market.prices import TIMEFRAMES, interval_start
from market.simulated_past import flow_state, last_quote, minutes_ms, recent_flows, recent_from, recent_rows
from market.store import (
    CandleToWrite,
    change_kind,
    lock_series,
    market_tables,
    prepared_batches,
    read_minutes_since,
    tick_of,
    wanted_kind,
    write_candles,
    write_flows,
    write_prepared,
    write_quote,
)
from signals_feed.publishing import end_signals

# What the command that loads the demo prints as it goes.
Progress = Callable[[str], None]


class Writable(Protocol):
    """Standard output, as a command has it."""

    def write(self, text: str, *, ending: str) -> object: ...
    def flush(self) -> None: ...
    def isatty(self) -> bool: ...


def line_on(out: Writable) -> Progress:
    """On a terminal one line that changes, elsewhere a line for each step."""

    def write(text: str) -> None:
        if out.isatty():
            out.write(f"\r\033[K{text}", ending="")
        else:
            out.write(text, ending="\n")
        out.flush()

    return write


def seed_recent(now_ms: int, progress: Progress) -> None:
    """Makes the minutes from which the engine continues, for all instruments that have none, and notes the
    earlier past as unfinished."""
    catalogue.load_now()
    until_ms = interval_start(now_ms, MINUTE_MS)
    # An instrument that has been priced before keeps its past, whatever priced it. One that was closed when
    # its past was started has no minute yet from which the engine could go on.
    known = set(LastQuote.objects.values_list("pk", flat=True))
    unmade = set(UnfinishedPast.objects.filter(made_at=None).values_list("pk", flat=True))
    unknown = [facts for facts in priced_by_demo() if facts.id not in known - unmade]
    new = [facts for facts in unknown if not Candle.objects.filter(instrument_id=facts.id).exists()]
    if new:
        _make_months(until_ms)
    for number, facts in enumerate(new, 1):
        progress(f"Making recent prices: {facts.symbol} ({number} of {len(new)})")
        rows, quote = recent_rows(facts, until_ms), last_quote(facts, until_ms)
        candles, flows = prepared_batches(rows), recent_flows(facts, rows)
        with transaction.atomic():
            write_prepared(candles)
            write_flows(flows)
            if quote is not None:
                write_quote(facts.id, quote, DEMO, flow_state(flows))
            until_at = moment(recent_from(facts, until_ms))
            UnfinishedPast.objects.update_or_create(instrument_id=facts.id, defaults={"until_at": until_at})


def _make_months(until_ms: int) -> None:
    """Of all the minutes there will be. Within the transaction of a past, others would wait for its end."""
    days = range(until_ms - minutes_ms() - 2 * TIMEFRAMES["1d"], until_ms, TIMEFRAMES["1d"])
    # They cannot be made during a long read: then candles wait for them where the rest is.
    with suppress(OperationalError):
        market_tables().make_months(map(moment, [*days, until_ms]))


def priced_by_demo() -> list[InstrumentFacts]:
    """Those whose source is the simulated market."""
    default = default_feed(settings.DEMO)
    return [
        facts for facts in catalogue.active() if feeds_of(facts.source, facts.fallback, default)[0] == DEMO
    ]


def simulated_since() -> dict[int, int]:
    """For each instrument with simulated prices the time since when they are simulated, 0 for always."""
    rows = LastQuote.objects.filter(simulated=True).values_list("pk", "kind_since")
    return {pk: 0 if since is None else epoch_ms(since) for pk, since in rows}


def remove_market(now_ms: int) -> None:
    catalogue.load_now()
    # First, so that a process that is still making some of it writes nothing more.
    UnfinishedPast.objects.all().delete()
    AbsorptionWindows.objects.filter(instrument__last_quote__source=DEMO).delete()
    for row in LastQuote.objects.filter(source=DEMO).select_related("instrument"):
        _remove_quote(row, now_ms)
    FormerQuote.objects.filter(source=DEMO).delete()
    FormingMinute.objects.filter(source__regex=rf"(^|\+){DEMO}(\+|$)").delete()
    _remove_candles()
    # The numbers of the removed quotes will be used again, and must not be taken for the old ones.
    EngineState.objects.update(epoch="")


def _remove_candles() -> None:
    """A coarse candle that is also of the replay is made again from the replay's minutes if they are kept."""
    # A candle names all its sources, as in `demo+replay`. The replay is the only other simulated one.
    of_demo = Candle.objects.filter(source__contains=DEMO, simulated=True)
    mixed = of_demo.exclude(source=DEMO).exclude(timeframe="1m").select_related("instrument")
    remade = [row for candle in mixed if (row := _without_demo(candle)) is not None]
    of_demo.delete()
    minutes = Candle.objects.filter(
        instrument=OuterRef("instrument"), simulated=True, timeframe="1m", opened_at=OuterRef("opened_at")
    )
    OrderFlowMinute.objects.filter(~Exists(minutes), simulated=True).delete()
    write_candles(remade)


def _without_demo(mixed: Candle) -> CandleToWrite | None:
    facts, opened_ms = catalogue.known(mixed.instrument.symbol), epoch_ms(mixed.opened_at)
    if facts is None:
        return None
    end_ms = opened_ms + TIMEFRAMES[mixed.timeframe]
    since = read_minutes_since(facts, opened_ms, simulated=True)
    own = [each for each in since if each.opened_ms < end_ms and DEMO not in each.source.split("+")]
    if not own:
        return None
    candle = own[0].opened_at(opened_ms)
    for minute in own[1:]:
        candle.take(minute)
    return facts.id, mixed.timeframe, candle, mixed.basis


def _remove_quote(row: LastQuote, now_ms: int) -> None:
    """Signals that people published on it end with it, at its price. An earlier real quote comes back."""
    facts = catalogue.known(row.instrument.symbol)
    if facts is None or wanted_kind(facts):
        row.delete()
        return
    next_source = feeds_of(facts.source, facts.fallback, default_feed(settings.DEMO))[0]
    last = tick_of(row, facts.symbol)
    lock_series(facts.id)
    end_signals(SeriesEnding(facts.symbol, last, row.seq, row.source, next_source), [], "")
    if FormerQuote.objects.filter(pk=row.pk, simulated=False).exists():
        change_kind(facts, now_ms, simulated=False)
    else:
        row.delete()
