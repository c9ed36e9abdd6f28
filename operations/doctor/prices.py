"""Whether an engine makes prices, and whether their sources send any."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from core.program.commands import command
from core.times import epoch_ms
from instruments.models import Instrument
from instruments.sources import PUSH, default_feed, feeds_of
from market.models import IngestKey, LastQuote
from market.store import has_writer

from .diagnosis import Diagnosis, ok, warn

ABOUT = "prices"
# A tick is in the database a second after it came, and later while that is busy.
UNWRITTEN = timedelta(seconds=15)
MOST_NAMED = 5
SOURCES = "docs/feeds.md says which sources there are: back office → Instruments → Data."

# The engine alone knows, and tells the processes that serve.
WHY = f"Back office → Market status says which source is lost and why, such as its maintenance. {SOURCES}"


def check_prices() -> Iterator[Diagnosis]:
    now = timezone.now()
    instruments = list(Instrument.objects.filter(active=True).select_related("calendar"))
    if not instruments:
        fix = f"`{command('load_instruments')}` takes the shipped ones, or yours from a CSV."
        yield warn(ABOUT, "There are no instruments, so there is nothing to price.", fix)
        return
    yield from _without_key(instruments)
    yield from _without_owner()
    if not has_writer():
        fix = f"Start one: `{command('run_engine' if settings.REDIS_URL else 'serve')}`."
        yield warn(ABOUT, "No engine is running, so no prices are made.", fix)
    elif silent := _silent(instruments, now):
        named = f"{', '.join(silent[:MOST_NAMED])}{' and others' if silent[MOST_NAMED:] else ''}"
        yield warn(ABOUT, f"No fresh prices of {named}, though the market is open.", WHY)
    else:
        yield ok(ABOUT, "An engine is running, and has fresh prices of each open market.")


def _without_key(instruments: list[Instrument]) -> Iterator[Diagnosis]:
    default = default_feed(settings.DEMO)
    pushed = [
        each
        for each in instruments
        if feeds_of(each.source, each.fallback, default)[0].partition(":")[0] == PUSH
    ]
    if pushed and not IngestKey.objects.filter(revoked_at=None).exists():
        says = (
            f"Of {len(instruments)} instruments, {len(pushed)} wait for pushed prices, and there is no "
            "ingest key."
        )
        fix = f"Name a source for them, or let yours push: `{command('issue_ingest_key NAME')}`. {SOURCES}"
        yield warn(ABOUT, says, fix)


def _without_owner() -> Iterator[Diagnosis]:
    names = (
        IngestKey.objects.filter(revoked_at=None, account=None)
        .order_by("name")
        .values_list("name", flat=True)
    )
    if names:
        says = f"Ingest keys that belong to nobody: {len(names)} ({', '.join(names[:MOST_NAMED])})."
        fix = (
            "Their holders could publish signals on the prices that they send. Name the owner: back office → "
            "Market → Ingest keys."
        )
        yield warn(ABOUT, says, fix)


def _silent(instruments: list[Instrument], now: datetime) -> list[str]:
    """The symbols of open markets whose last tick is too old."""
    quotes = LastQuote.objects.values_list("instrument_id", "quoted_at")
    quoted = {instrument_id: at for instrument_id, at in quotes if at is not None}
    return [
        each.symbol
        for each in instruments
        if each.calendar.hours().is_open(epoch_ms(now))
        and (
            each.pk not in quoted or now - quoted[each.pk] > UNWRITTEN + timedelta(seconds=each.stale_after_s)
        )
    ]
