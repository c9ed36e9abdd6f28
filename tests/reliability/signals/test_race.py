"""Many threads close the same signals on PostgreSQL: watchers, publishers, staff. Each closes once."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from decimal import Decimal

import pytest
from django.utils import timezone

from accounts.models import User
from core.times import epoch_ms_after
from instruments.catalogue import catalogue
from signals_feed.closing import Closing, close_signals
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.ledger.verify import verify
from signals_feed.models import Announcement, Evidence, Signal
from signals_feed.publishing.actions import SignalNotActive, cancel, close_by_hand
from signals_feed.rules import Quoted
from tests.factories import make_account, make_instrument
from tests.patience import PATIENCE_S
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.signals_feed.published_signals import make_published

from .test_kill import allow

THREADS, SIGNALS = 24, 16
pytestmark = pytest.mark.row("signals", "every signal closes exactly once; the ledger is intact")
Act = Callable[[Signal], object]


def quoted(signal: Signal) -> Quoted:
    return Quoted(Decimal("1.0850"), Decimal("1.0851"), epoch_ms_after(signal.published_at))


def by_watcher(signal: Signal) -> bool:
    """In one transaction with nine others, as a watcher closes those that were asked to close."""
    others = list(Signal.objects.active().filter(instrument=signal.instrument_id)[:9])
    wanted = {each.pk: each for each in [signal, *others]}
    now_ms = epoch_ms_after(signal.published_at) + 1000
    closings = [Closing.at_current(each, "manual", quoted(each), now_ms) for each in wanted.values()]
    return signal.pk in close_signals(closings)


def by_publisher(signal: Signal) -> bool:
    fresh = quoted(signal)._replace(time_ms=epoch_ms_after(timezone.now()))
    close_by_hand(signal, by=User.objects.get(pk=signal.user_id), quote=fresh)
    return True


def by_staff(signal: Signal) -> bool:
    """A cancellation is no closure yet."""
    cancel(signal, reason="wrong symbol", by="alice")
    return False


ACTS: tuple[Act, ...] = (by_watcher, by_watcher, by_publisher, by_staff)


class Crowd:
    def __init__(self, installation: Installation, signals: list[Signal], seed: int) -> None:
        self._installation, self._signals = installation, signals
        self._seed = seed
        self._ready = threading.Barrier(THREADS)
        self.won: Counter[object] = Counter()
        self.faults: list[Exception] = []
        self._told = threading.Lock()

    def run(self) -> None:
        threads = [threading.Thread(target=self._one, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in threads)

    def _one(self, number: int) -> None:
        dice = random.Random(self._seed + number)  # noqa: S311
        order = dice.sample(self._signals, len(self._signals))
        with self._installation.orm():
            self._ready.wait(PATIENCE_S)
            for signal in order:
                self._try(ACTS[number % len(ACTS)], signal)

    def _try(self, act: Act, signal: Signal) -> None:
        try:
            has_won = act(Signal.objects.select_related("instrument").get(pk=signal.pk))
        except SignalNotActive:
            return
        except Exception as fault:  # noqa: BLE001 - told at the end, with all others
            with self._told:
                self.faults.append(fault)
            return
        if has_won:
            with self._told:
                self.won[signal.pk] += 1


def test_of_many_simultaneous_closes_one_succeeds(scaled: Installation, tell: Tell, seed: int) -> None:
    with scaled.orm():
        instrument = make_instrument("RACE")
        # Where rules 2 have begun, the demo's alone are published by those of before.
        publisher = make_account(is_demo=True).user
        allow(publisher)
        catalogue.load_now()
        signals = [make_published(instrument, user=publisher) for _ in range(SIGNALS)]
    crowd = Crowd(scaled, signals, seed)

    crowd.run()

    with scaled.orm():
        own = [signal.pk for signal in signals]
        closed = Signal.objects.filter(pk__in=own, status="closed").count()
        told = Announcement.objects.filter(signal__in=own, kind="closed").count()
        proofs = Evidence.objects.filter(signal__in=own, kind="exit").count()
        entries = LedgerEntry.objects.filter(signal__in=own, kind="close").count()
        whole = verify()
    tell(
        f"{THREADS} threads, {SIGNALS} signals: closed: {closed}, announced: {told}, errors:"
        f" {len(crowd.faults)}"
    )
    assert crowd.faults == []
    assert (closed, told, proofs, entries) == (SIGNALS,) * 4
    # Of those that were closed together with another's, nobody says that he won them.
    assert all(times == 1 for times in crowd.won.values())
    assert whole.fault == ""
