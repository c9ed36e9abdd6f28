from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from time_machine import Traveller

from accounts.open_streams.registry import open_streams
from instruments.models import Instrument
from signals_feed.ledger.guards import put_up_triggers, take_down_triggers
from signals_feed.models import Signal
from tests.accounts.open_streams.claims import claimed, release
from tests.client import Api, Server
from tests.contract.answers import MILLISECONDS
from tests.factories import make_instrument, make_signal

pytestmark = pytest.mark.services

INTEGERS = ("instruments_active", "clients_connected", "signals_active", "uptime_seconds")


@pytest.fixture(autouse=True)
def rows(shared: Api) -> Iterator[None]:
    """Two active instruments of three, two active signals of three."""
    for symbol, active in (("EURUSD", True), ("GBPUSD", True), ("DORMANT", False)):
        make_instrument(symbol, active=active)
    for status in ("active", "active", "closed"):
        make_signal(status=status)
    yield
    # The server is shared, and the database lets go of no published signal.
    take_down_triggers()
    Signal.objects.all().delete()
    put_up_triggers()
    Instrument.objects.all().delete()


def session(shared: Api) -> dict[str, Any]:
    body: dict[str, Any] = shared.ask("/api/session").json()
    return body


def test_body_has_exactly_the_fields_of_the_specification(shared: Api) -> None:
    response = shared.ask("/api/session")

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert set(response.json()) == {*INTEGERS, "ai_models_available", "server_time"}


@pytest.mark.parametrize("name", INTEGERS)
def test_numbers_are_integers(shared: Api, name: str) -> None:
    assert type(session(shared)[name]) is int


def test_only_active_instruments_are_counted(shared: Api) -> None:
    assert session(shared)["instruments_active"] == 2


def test_only_active_signals_are_counted(shared: Api) -> None:
    assert session(shared)["signals_active"] == 2


def test_clients_are_the_open_streams_of_all_accounts(shared_server: Server, shared: Api) -> None:
    before = session(shared)["clients_connected"]
    slots = [shared_server.run(claimed(open_streams, account)) for account in (1, 1, 2)]
    during = session(shared)["clients_connected"]
    shared_server.run(release(slots))

    assert (before, during, session(shared)["clients_connected"]) == (0, 3, 0)


def test_the_model_that_is_always_there_is_the_first(shared: Api) -> None:
    assert session(shared)["ai_models_available"][0] == "tickwire-analyst-1"


def test_server_time_is_now_to_the_millisecond(clock: Traveller, shared: Api) -> None:
    clock.shift(0.5)

    assert MILLISECONDS.fullmatch(session(shared)["server_time"])
    assert session(shared)["server_time"] == "2026-11-18T12:00:00.500Z"


def test_uptime_is_not_negative_after_the_clock_was_set_back(clock: Traveller, shared: Api) -> None:
    assert session(shared)["uptime_seconds"] == 0
