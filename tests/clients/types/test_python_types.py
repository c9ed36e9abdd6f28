"""The types of the Python client are those of the reference; mypy checks their use in python_types.py."""

from __future__ import annotations

import inspect

from tickwire import AsyncClient, Client

from market.streams.asyncapi import CHANNELS, document
from news.stream import CHANNEL as NEWS
from signals_feed.stream import CHANNEL as SIGNALS
from tests.contract.openapi.documented import DOCUMENT
from tools.client_types import FOLDER, modules


def test_types_are_those_of_the_reference() -> None:
    made = modules(DOCUMENT, document((*CHANNELS, SIGNALS, NEWS), "localhost"))
    kept = {path.stem: path.read_text() for path in FOLDER.glob("*.py")}
    assert kept == made, "python -m tools.client_types makes them anew"


def test_methods_show_their_parameters_and_what_they_do() -> None:
    for client in (Client("any"), AsyncClient("any")):
        assert list(inspect.signature(client.market).parameters) == [
            "symbol",
            "timeframe",
            "bars",
            "closed_only",
        ]
        assert inspect.getdoc(client.quotes) == inspect.getdoc(Client.quotes)
        assert "empty list is an error" in str(inspect.getdoc(client.quotes))
