"""The simulated past, made an instrument at a time by processes beside the service, and what pages say of its
progress. A process that is killed leaves nothing half made."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.core.management.base import OutputWrapper
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.plain_json import encode
from core.program import IS_CHECKOUT, ROOT
from core.times import epoch_ms
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market.models import UnfinishedPast
from market.simulated_past import older_flows, older_rows
from market.store import is_alive, own_name, prepared_batches, write_flows, write_prepared

from .market import Progress

# Making the past of one instrument takes a second or a few. Whether a process elsewhere that needs longer
# is gone cannot be known; one that lives here may be slow, because it stands behind all others.
GONE, SLOW = timedelta(seconds=60), timedelta(minutes=5)
LOOK_S = 0.2

# From the end of one to the beginning of the next.
MOMENT = timedelta(seconds=20)
LATER = (
    "The remaining part is generated when the service starts again; until then the demo publishes no signals."
)


class PastProgress(NamedTuple):
    wanted: int
    unmade: tuple[str, ...]
    """Their symbols."""
    is_going_on: bool
    """Whether a process works on it."""

    @property
    def text(self) -> str:
        made = self.wanted - len(self.unmade)
        if not self.is_going_on:
            return f"The demo's past is not complete: {made} of {self.wanted} instruments. {LATER}"
        if not self.unmade:
            return "The demo's signals and news are being made."
        return f"The demo's past is being made: {made} of {self.wanted} instruments"


def past_progress() -> PastProgress | None:
    """None once all of it is complete, with the signals and news that follow from it."""
    rows = list(UnfinishedPast.objects.order_by("pk").select_related("instrument"))
    if not rows:
        return None
    is_going_on = any(map(_is_going_on, rows))
    unmade = tuple(row.instrument.symbol for row in rows if row.made_at is None)
    return PastProgress(len(rows), unmade, is_going_on)


def _is_going_on(past: UnfinishedPast) -> bool:
    if past.made_at is not None and not past.maker:
        return past.made_at > timezone.now() - MOMENT
    return _is_at_work(past)


def _is_at_work(past: UnfinishedPast) -> bool:
    """Whether its maker is still at work, or about to start."""
    lives = is_alive(past.maker)
    patience = SLOW if lives else GONE
    return lives is not False and past.begun_at is not None and past.begun_at > timezone.now() - patience


def announce_makers() -> None:
    """They are about to start."""
    UnfinishedPast.objects.filter(made_at=None, maker="").update(begun_at=timezone.now())


def make_pasts(progress: Progress, go_on: Callable[[], bool]) -> bool:
    """Until all are made, by other processes too; False if `go_on` returned False before."""
    while go_on():
        if (past := claim(UnfinishedPast.objects.filter(made_at=None))) is not None:
            # The instrument may have changed since.
            catalogue.load_now()
            facts = catalogue.known(past.instrument.symbol)
            if facts is not None and make_past(facts, past) and (reached := past_progress()) is not None:
                progress(reached.text)
        elif UnfinishedPast.objects.filter(made_at=None).exists():
            time.sleep(LOOK_S)
        else:
            return True
    return False


def claim(pasts: QuerySet[UnfinishedPast]) -> UnfinishedPast | None:
    """The first one on which no process works, for this process alone."""
    now = timezone.now()
    for past in pasts.select_related("instrument").order_by("pk"):
        if past.maker and _is_at_work(past):
            continue
        same = UnfinishedPast.objects.filter(
            pk=past.pk, maker=past.maker, begun_at=past.begun_at, made_at=past.made_at
        )
        if same.update(maker=own_name(), begun_at=now):
            return past
    return None


def make_past(facts: InstrumentFacts, past: UnfinishedPast) -> bool:
    """False if another process made or removed it."""
    rows = older_rows(facts, epoch_ms(past.until_at))
    candles, flows = prepared_batches(rows), older_flows(facts, rows)
    with transaction.atomic():
        unmade = UnfinishedPast.objects.select_for_update().filter(pk=past.pk, made_at=None)
        if unmade.first() is None:
            return False
        write_prepared(candles)
        write_flows(flows)
        unmade.update(made_at=timezone.now(), maker="")
        ControlEvent.objects.publish(EventKind.CANDLES_IMPORTED, by="demo", symbol=facts.symbol)
    return True


# How far the demo's past is made, for the page that waits for it.
@never_cache
@require_safe
def demo_past(request: HttpRequest) -> HttpResponse:
    if not settings.DEMO:
        raise Http404
    return HttpResponse(encode(shown_past()), content_type="application/json")


def shown_past() -> dict[str, Any] | None:
    """What the terminal shows of it; None where there is nothing to wait for."""
    past = past_progress() if settings.DEMO else None
    return past and {"text": past.text, "unmade": past.unmade, "url": reverse("demo_past")}


# The service comes first where both want a core.
NICENESS = 5
ENDS_WITHIN_S = 5.0
MOST_AGAIN = 3
PACKAGE = "tickwire_server"


class DemoMakers:
    """The processes that make the rest of the demo while the service is already there."""

    def __init__(self, out: OutputWrapper, number: int) -> None:
        self._out = out
        self._number = min(number, os.cpu_count() or 1)
        self._processes: list[subprocess.Popen[str]] = []
        self._starting = threading.Lock()
        self._is_stopping = False

    def start(self) -> None:
        if not self._number:
            return
        try:
            self._start_all()
        except OSError as error:
            self._out.write(f"The demo's past is not complete: {error.strerror or error}. {LATER}")
        threading.Thread(target=self._watch, name="makers of the demo", daemon=True).start()

    def stop(self) -> None:
        """Safe at any moment: incomplete work is rolled back, and made at the next start."""
        with self._starting:
            self._is_stopping = True
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start_all(self) -> None:
        self._processes = []
        try:
            for _ in range(self._number):
                self._processes.append(_start_one())
        except OSError:
            # A single process can make all of it.
            if not self._processes:
                raise

    def _watch(self) -> None:
        faults = self._wait_for_all()
        for _ in range(MOST_AGAIN):
            # Killed, for example for lack of memory. One that reported a fault would only report it again.
            if any(process.returncode < 0 for process in self._processes) and self._start_again():
                faults = self._wait_for_all()
        if self._is_stopping:
            return
        if self._out.isatty():
            self._out.write("")
        if any(process.returncode for process in self._processes):
            # All of them report the same.
            self._out.write(next(filter(None, faults), f"The demo's past is not complete. {LATER}"))
        self._out.flush()

    def _start_again(self) -> bool:
        with self._starting:
            if self._is_stopping:
                return False
            with suppress(OSError):
                self._start_all()
            return bool(self._processes)

    def _wait_for_all(self) -> list[str]:
        """Returns the faults that they report."""
        # All are polled each time: one that has ended looks alive to the others until it is.
        while None in [process.poll() for process in self._processes]:
            time.sleep(LOOK_S)
        return [process.communicate()[1].strip() for process in self._processes]


def _start_one() -> subprocess.Popen[str]:
    program = (str(ROOT / "manage.py"),) if IS_CHECKOUT else ("-m", PACKAGE)
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, *program, "seed_demo", "--beside", str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Ctrl-C goes to the service, which ends them.
        start_new_session=True,
    )
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
    return process
