"""A server that is killed with its engine between a request and its fill, by the clocks of the machine."""

from __future__ import annotations

import json
import os
import signal as signals
from contextlib import suppress

import httpx
import pytest

from core import clock
from market.push.keys import issue_ingest_key
from signals_feed.contradictions import contradictions
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.ledger.verify import verify
from signals_feed.models import Signal
from signals_feed.record import Payload
from tests.factories import make_instrument
from tests.patience import wait_until
from tests.reliability.clients.person import Person
from tests.reliability.conftest import Tell
from tests.reliability.services.engine_processes import engines, writer_of
from tests.reliability.services.processes import Installation, Process, http

SYMBOL = "FILLED"
pytestmark = pytest.mark.row("5", "every signal is filled once, by the rules that it was published by")


class Case:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        with installation.orm():
            make_instrument(SYMBOL, source="push")
            self._headers = {"X-Ingest-Key": issue_ingest_key("desk", SYMBOL, by="test")[1]}
            self.person = Person("fast")
        self.bid = 1.0841

    def push(self, server: Process) -> None:
        tick = {"symbol": SYMBOL, "bid": self.bid, "ask": self.bid + 0.0001, "time": clock.now_ms()}
        # Where nobody takes it now, the next one follows.
        with suppress(httpx.TransportError):
            http.post(f"{server.url}/ingest/ticks", json=[tick], headers=self._headers)

    def told(self) -> list[Payload]:
        with self._installation.orm(only_reads=True):
            own = Signal.objects.filter(instrument__symbol=SYMBOL).values("pk")
            entries = LedgerEntry.objects.filter(signal__in=own).order_by("position")
            return [json.loads(payload) for payload in entries.values_list("payload", flat=True)]

    def push_until(self, server: Process, *kinds: str) -> None:
        def has_come() -> bool:
            self.push(server)
            return any(entry["kind"] in kinds for entry in self.told())

        wait_until(has_come)

    def publish(self, server: Process) -> None:
        def is_published() -> bool:
            self.push(server)
            self.person.publish(server, SYMBOL, "1.0843")
            return bool(self.person.signals)

        # Its first price has to get there.
        wait_until(is_published)
        self.push_until(server, "arm")

    def end(self, server: Process, tell: Tell) -> None:
        self.push_until(server, "fill", "close")
        self.bid = 0.4
        self.push_until(server, "close")
        with self._installation.orm():
            (signal,) = Signal.objects.filter(instrument__symbol=SYMBOL)
            fault = verify().fault
        entries = self.told()
        kinds = [entry["kind"] for entry in entries]
        tell(f"{', '.join(kinds)}: {signal.close_reason}")
        assert (signal.rules, fault, contradictions(entries)) == (2, "", [])
        # A machine that needs a minute to go on finds it too late to fill it.
        outcomes = ["publish", "fill", "close"], ["publish", "cancel", "close"]
        assert [each for each in kinds if each != "arm"] in outcomes


def test_signal_is_filled_once_by_the_engine_that_follows_one_that_was_killed(
    embedded: Installation, tell: Tell
) -> None:
    case = Case(embedded)
    with embedded.serve(1) as (server,):
        case.publish(server)
        os.kill(server.pid, signals.SIGKILL)
    with embedded.serve(1) as (server,):
        case.end(server, tell)


def test_signal_is_filled_once_by_the_engine_that_takes_over(scaled: Installation, tell: Tell) -> None:
    case = Case(scaled)
    with engines(scaled, 2) as running, scaled.serve(1) as (server,):
        case.publish(server)
        pid = writer_of(scaled)
        next(engine for engine in running if engine.pid == pid).kill()
        case.end(server, tell)
