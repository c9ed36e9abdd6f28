"""`/terminal/watchlist.json`: what no tick tells a terminal that is open."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from status.models import Incident
from tests.factories import make_calendar, make_instrument, put_quote

pytestmark = pytest.mark.django_db
PATH = "/terminal/watchlist.json"


def test_stranger_is_refused_unless_the_terminal_is_public(client: Client, settings: Any) -> None:
    settings.PUBLIC_TERMINAL = False
    assert client.get(PATH).status_code == 403


def test_rows_are_told_by_symbol(client: Client, settings: Any) -> None:
    settings.PUBLIC_TERMINAL = True
    make_instrument("EURUSD")
    make_instrument("GBPUSD", calendar=make_calendar("never", "Mon 00:00-00:01", holidays=""))
    put_quote("EURUSD", 1.0841)
    answer = client.get(PATH)
    assert answer["Cache-Control"].startswith("max-age=0")
    told = answer.json()["instruments"]
    assert (told["EURUSD"]["state"], told["EURUSD"]["bid"], told["EURUSD"]["opensMs"]) == (
        "open",
        1.0841,
        None,
    )
    assert told["EURUSD"]["group"] == told["GBPUSD"]["group"] == "Forex"


def test_open_incidents_are_told_and_ended_ones_are_not(client: Client, settings: Any) -> None:
    settings.PUBLIC_TERMINAL = False
    client.force_login(get_user_model().objects.create_user("trader"))
    Incident.objects.create(title="Over", impact="major", ended_at=timezone.now() + timedelta(hours=1))
    Incident.objects.create(title="Late quotes", impact="minor")
    assert client.get(PATH).json()["incidents"] == [
        {"title": "Late quotes", "impact": "minor", "kind": "degraded"}
    ]


def test_unknown_symbol_of_the_address_is_escaped_and_short(client: Client, settings: Any) -> None:
    settings.PUBLIC_TERMINAL = True
    make_instrument("EURUSD")
    page = client.get("/terminal?symbol=<script>xxxxxxxxxxxxxxxxxxxxxxxx").content.decode()
    assert "<strong>&lt;SCRIPT&gt;XXXXXXXXXXXX</strong>" in page
    for known in ("eurusd", "EUR/USD"):
        assert "There is no instrument" not in client.get("/terminal", {"symbol": known}).content.decode()
