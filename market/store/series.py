"""An instrument's simulated and real prices are two series that never mix: what is stored of them, and the
change from one to the other."""

from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import connection, transaction

from core.times import epoch_ms, moment
from instruments.facts import InstrumentFacts
from instruments.models import Instrument
from instruments.sources import default_feed, feeds_of, is_simulated
from market.models import AbsorptionWindows, FormerQuote, FormingMinute, LastQuote

from .checkpoints import Checkpoint, tick_of

# Any number will do, as long as no other pair of numbers in the database is locked under it.
SERIES_LOCK = 20_261
QUOTE = ("simulated", "source", "bid", "ask", "quoted_at", "flow_state", "source_seqs")
NONE = {field.name: field.get_default() for field in LastQuote._meta.fields if field.name in QUOTE}


def wanted_kind(facts: InstrumentFacts | Instrument, default: str | None = None) -> bool:
    """Whether what prices it by now is simulated."""
    default = default or default_feed(settings.DEMO)
    return is_simulated(feeds_of(facts.source, facts.fallback, default)[0])


def present_kind(instrument_id: int) -> bool:
    """Whether the series that is answered is simulated, as the engine wrote it last."""
    stored = LastQuote.objects.filter(pk=instrument_id).values_list("simulated", flat=True).first()
    return wanted_kind(Instrument.objects.get(pk=instrument_id)) if stored is None else stored


class SeriesStart(NamedTuple):
    since_ms: int = 0
    """No quote of the series before is as young; one of a venue whose clock is behind ours may be older."""
    after_seq: int | None = None
    """No quote of the series before has a higher number, in the numbering of the database."""


def hold_series(instrument_id: int) -> SeriesStart:
    """Within a transaction: where the present series began. It does not end before the transaction does."""
    _lock("pg_advisory_xact_lock_shared", instrument_id)
    found = LastQuote.objects.filter(pk=instrument_id).values_list("kind_since", "kind_after_seq").first()
    since, after_seq = found or (None, None)
    return SeriesStart() if since is None else SeriesStart(epoch_ms(since), after_seq)


def lock_series(instrument_id: int) -> None:
    """Within the transaction that ends it, before anything of it is read: those that held it are done."""
    _lock("pg_advisory_xact_lock", instrument_id)


def _lock(function: str, instrument_id: int) -> None:
    """Of its own, as the rows are written every second. SQLite has one writer."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {function}(%s, %s)", [SERIES_LOCK, instrument_id])  # noqa: S608 - names of our own


@transaction.atomic
def change_kind(facts: InstrumentFacts, at_ms: int, *, simulated: bool) -> Checkpoint:
    """Begin the series of the other kind; returns where it ended the last time. The numbers of the ticks go
    on, because the streams do."""
    lock_series(facts.id)
    row, _ = LastQuote.objects.select_for_update().get_or_create(instrument_id=facts.id)
    former = FormerQuote.objects.filter(pk=facts.id, simulated=simulated).first()
    ended = {name: getattr(row, name) for name in QUOTE}
    again = NONE if former is None else {name: getattr(former, name) for name in QUOTE}
    if row.bid is not None and row.simulated != simulated:
        FormerQuote.objects.update_or_create(instrument_id=facts.id, defaults=ended)
    elif former is not None:
        former.delete()
    for name, value in again.items():
        setattr(row, name, value)
    # A source's clock may be ahead of ours, and its last quote with it.
    since = moment(at_ms)
    if ended["quoted_at"] is not None:
        since = max(since, ended["quoted_at"] + timedelta(milliseconds=1))
    row.simulated, row.kind_since, row.kind_after_seq = simulated, since, row.seq
    row.save()
    FormingMinute.objects.filter(pk=facts.id).delete()
    AbsorptionWindows.objects.filter(pk=facts.id).delete()
    numbers = row.seq, row.flow_seq, row.flow_state, row.source_seqs
    kind = simulated, row.source, epoch_ms(since), row.candle_seqs or {}
    return Checkpoint(tick_of(row, facts.symbol), None, *numbers, *kind)
