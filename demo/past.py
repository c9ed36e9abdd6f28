"""The simulated past, made an instrument at a time by as many processes as like to. One that is killed leaves
nothing half made, and whoever comes later goes on."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, Max, QuerySet
from django.utils import timezone

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.times import epoch_ms
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market.models import UnfinishedPast
from market.simulated_past import older_rows
from market.store import is_alive, own_name, prepared_batches, write_prepared

from .instruments import Progress

# Making the past of one instrument takes a second or a few: who needs longer is gone.
GONE = timedelta(seconds=60)
LOOK_S = 0.2


class PastProgress(NamedTuple):
    made: int
    wanted: int
    is_going_on: bool
    """Whether somebody works on it."""


def past_progress() -> PastProgress | None:
    """None once all of it is there, with what the demo makes of it."""
    pasts = UnfinishedPast.objects.aggregate(
        made=Count("made_at"), wanted=Count("pk"), begun=Max("begun_at"), last=Max("made_at")
    )
    if not pasts["wanted"]:
        return None
    since = timezone.now() - GONE
    is_going_on = any(at is not None and at > since for at in (pasts["begun"], pasts["last"]))
    return PastProgress(pasts["made"], pasts["wanted"], is_going_on)


def make_pasts(progress: Progress, go_on: Callable[[], bool]) -> bool:
    """Until all are made, by others as well; False if `go_on` said no before."""
    while go_on():
        if (past := claim(UnfinishedPast.objects.filter(made_at=None))) is not None:
            # Somebody may have changed the instrument meanwhile.
            catalogue.load_now()
            facts = catalogue.known(past.instrument.symbol)
            if facts is not None and _make(facts, past):
                tell(progress)
        elif UnfinishedPast.objects.filter(made_at=None).exists():
            time.sleep(LOOK_S)
        else:
            return True
    return False


def claim(pasts: QuerySet[UnfinishedPast]) -> UnfinishedPast | None:
    """The first one on which nobody works, for this process alone."""
    now = timezone.now()
    for past in pasts.select_related("instrument").order_by("pk"):
        is_young = past.begun_at is not None and past.begun_at > now - GONE
        if past.maker and is_young and is_alive(past.maker) is not False:
            continue
        same = UnfinishedPast.objects.filter(
            pk=past.pk, maker=past.maker, begun_at=past.begun_at, made_at=past.made_at
        )
        if same.update(maker=own_name(), begun_at=now):
            return past
    return None


def _make(facts: InstrumentFacts, past: UnfinishedPast) -> bool:
    """False if it was made or removed meanwhile."""
    candles = prepared_batches(older_rows(facts, epoch_ms(past.until_at)))
    with transaction.atomic():
        unmade = UnfinishedPast.objects.select_for_update().filter(pk=past.pk, made_at=None)
        if unmade.first() is None:
            return False
        write_prepared(candles)
        unmade.update(made_at=timezone.now(), maker="")
        ControlEvent.objects.publish(EventKind.CANDLES_IMPORTED, by="demo", symbol=facts.symbol)
    return True


def tell(progress: Progress) -> None:
    if (reached := past_progress()) is not None:
        progress(f"The demo's past: {reached.made} of {reached.wanted} instruments")
