"""A service that is not there, from the Python client and from its command."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tickwire import AsyncClient, BrokenAnswer, Client, ServiceUnreachable, TickwireError
from tickwire.answers import read

from tests.patience import PATIENCE_S

pytestmark = pytest.mark.served

NOWHERE = "http://127.0.0.1:9"
KEY = "tw_live_any"
Quote = Callable[..., Any]


def quote_waiting(url: str | None, **options: Any) -> Any:
    with Client(KEY, url, retries=0, **options) as client:
        return client.quote("EURUSD")


def quote_asynchronously(url: str | None, **options: Any) -> Any:
    async def ask() -> Any:
        async with AsyncClient(KEY, url, retries=0, **options) as client:
            return await client.quote("EURUSD")

    return asyncio.run(ask())


@pytest.fixture(params=[quote_waiting, quote_asynchronously], ids=["Client", "AsyncClient"])
def quote(request: pytest.FixtureRequest) -> Quote:
    asking: Quote = request.param
    return asking


def test_call_says_where_nothing_was_reached_and_why_by_an_error_that_is_one_of_httpx_too(
    quote: Quote,
) -> None:
    with pytest.raises(ServiceUnreachable) as ended:
        quote(NOWHERE)
    said = str(ended.value)
    assert said.startswith(f"The service could not be reached at {NOWHERE}: ")
    assert said.endswith(". Check the address, and whether the service is running.")
    assert isinstance(ended.value, TickwireError)
    assert isinstance(ended.value, httpx.TransportError)
    assert isinstance(ended.value.__cause__, httpx.ConnectError)
    assert ended.value.request.url == f"{NOWHERE}/api/market/EURUSD/quote"


def test_address_is_said_to_be_that_of_the_environment_or_the_default(
    quote: Quote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TICKWIRE_URL", NOWHERE)
    with pytest.raises(ServiceUnreachable, match=f"{NOWHERE}: .*The address comes from TICKWIRE_URL"):
        quote(None)
    monkeypatch.delenv("TICKWIRE_URL")
    monkeypatch.setattr("tickwire.calls.LOCAL", NOWHERE)
    with pytest.raises(ServiceUnreachable, match="the default address: .* set TICKWIRE_URL, or pass url"):
        quote(None)


def test_silence_is_said_with_how_long_it_lasted(quote: Quote) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(ServiceUnreachable, match="did not answer within 0.2 seconds.*longer timeout"):
            quote(url, timeout=0.2)


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "api.example.com", "ftp://example.com", "http://[::1"])
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="is not the address of a service: write it like http://"):
        Client(KEY, url)


def test_page_instead_of_json_is_an_error_of_the_client() -> None:
    page = httpx.Response(200, text="<html>", request=httpx.Request("GET", "http://example.com/api/limits"))
    with pytest.raises(BrokenAnswer, match="http://example.com/api/limits did not answer with JSON"):
        read(page)


@pytest.mark.parametrize(
    "words",
    [
        ("quote", "EURUSD"),
        ("watch", "EURUSD"),
        ("candles", "EURUSD"),
        ("candles", "EURUSD", "--start", "2026-11-01"),
    ],
)
def test_command_says_it_in_one_line(words: tuple[str, ...]) -> None:
    own = {"TICKWIRE_KEY": KEY, "PYTHONPATH": "clients/python", "TICKWIRE_URL": NOWHERE}
    command = [sys.executable, "-m", "tickwire", *words]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"The service could not be reached at {NOWHERE}: ")
    assert done.stderr.endswith(
        ". The address comes from TICKWIRE_URL: check it, and whether the service is running.\n"
    )
