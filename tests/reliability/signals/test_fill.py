"""A server that is killed with its engine between a request and its fill, by the clocks of the machine."""

from __future__ import annotations

import json
import os
import signal as signals

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
from tests.reliability.services.processes import Installation, Process, http

SYMBOL = "FILLED"
pytestmark = pytest.mark.row("5", "every signal is filled once, by the rules that it was published by")


class Desk:
    """Pushes a price whenever somebody looks."""

    def __init__(self, key: str) -> None:
        self._headers = {"X-Ingest-Key": key}
        self.bid = 1.0841

    def push(self, server: Process) -> None:
        tick = {"symbol": SYMBOL, "bid": self.bid, "ask": self.bid + 0.0001, "time": clock.now_ms()}
        http.post(f"{server.url}/ingest/ticks", json=[tick], headers=self._headers)


def told(installation: Installation) -> list[Payload]:
    with installation.orm(only_reads=True):
        payloads = LedgerEntry.objects.order_by("position").values_list("payload", flat=True)
        return [json.loads(payload) for payload in payloads]


def kinds(installation: Installation) -> list[str]:
    return [entry["kind"] for entry in told(installation)]


def test_signal_is_filled_once_though_the_engine_is_killed_before(embedded: Installation, tell: Tell) -> None:
    with embedded.orm():
        make_instrument(SYMBOL, source="push")
        desk, person = Desk(issue_ingest_key("desk", SYMBOL, by="test")[1]), Person("fast")

    def until(server: Process, kind: str) -> None:
        def has_come() -> bool:
            desk.push(server)
            return kind in kinds(embedded)

        wait_until(has_come)

    with embedded.serve(1) as (server,):
        desk.push(server)
        person.publish(server, SYMBOL, "1.0843")
        until(server, "arm")
        os.kill(server.pid, signals.SIGKILL)
    with embedded.serve(1) as (server,):
        wait_until(lambda: desk.push(server) or {"fill", "close"} & {*kinds(embedded)})
        desk.bid = 0.4
        until(server, "close")
    with embedded.orm():
        (signal,) = Signal.objects.all()
        fault = verify().fault
    entries = told(embedded)
    tell(f"{', '.join(entry['kind'] for entry in entries)}: {signal.close_reason}")
    assert (person.refused, signal.rules, fault) == ([], 2, "")
    assert contradictions(entries) == []
    # A machine that needs a minute to start again finds it too late to fill it.
    assert [each for each in kinds(embedded) if each != "arm"] in (
        ["publish", "fill", "close"],
        ["publish", "cancel", "close"],
    )
