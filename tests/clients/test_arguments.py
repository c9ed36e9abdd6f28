"""What the Python client refuses before it asks, in words that are of use to who wrote the call."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from typing import Any

import httpx
import pytest
from tickwire import ApiError, AsyncClient, Client
from tickwire.cli.commands import at, main

pytestmark = pytest.mark.served

ANSWER = {"items": [], "count": 0, "rejected": [], "ohlcv": [], "next": None}


@pytest.fixture
def asked() -> list[httpx.URL]:
    return []


@pytest.fixture
def client(asked: list[httpx.URL], monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    def answer(_: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        return httpx.Response(200, json=ANSWER)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", answer)
    with Client("tw_live_any") as made:
        yield made


COMMANDS = ["quote", "watch", "signals", "candles", "news", "orderflow", "ticks", "archive", "limits"]


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_every_argument_of_the_command_has_a_help_text(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--help"])
    # Beside a long option there is no room, and its text follows below.
    shown = re.sub(r"\n {20,}", "  ", capsys.readouterr().out)
    arguments = re.findall(r"^  (\S.*)$", shown, re.MULTILINE)
    assert arguments
    assert [line for line in arguments if not re.search(r"\S {2,}\S", line) and line != "COMMAND"] == []


@pytest.mark.parametrize("nothing", [[], (), iter(()), ""])
def test_empty_list_of_quotes_is_not_all_of_them(
    client: Client, asked: list[httpx.URL], nothing: Any
) -> None:
    async def ask() -> None:
        async with AsyncClient("tw_live_any", "http://127.0.0.1:9") as asynchronous:
            await asynchronous.quotes(nothing)

    for call in (lambda: client.quotes(nothing), lambda: asyncio.run(ask())):
        with pytest.raises(ValueError, match="The list of symbols is empty"):
            call()
    client.quotes()
    client.quotes(None)
    client.quotes(iter(["EURUSD", "BTCUSD"]))
    assert [dict(url.params) for url in asked] == [{}, {}, {"symbols": "EURUSD,BTCUSD"}]


def test_signals_are_the_active_ones_and_all_signals_all(client: Client, asked: list[httpx.URL]) -> None:
    client.signals()
    assert list(client.all_signals()) == []
    assert [url.params["status"] for url in asked] == ["active", "all"]


@pytest.mark.parametrize("moment", ["yesterday", "2026-11-31", ""])
def test_what_is_no_time_is_refused_in_words_of_python(client: Client, moment: str) -> None:
    with pytest.raises(ValueError, match="start is .* must be a date or a time, such as") as refused:
        client.history("EURUSD", start=moment)
    assert "%2B" not in str(refused.value)


@pytest.mark.parametrize(
    ("moment", "sent"),
    [
        ("2026-11-26", "2026-11-26T00:00:00Z"),
        ("20261126", "2026-11-26T00:00:00Z"),
        ("2026-11-26T12:00", "2026-11-26T12:00:00Z"),
        (date(2026, 11, 26), "2026-11-26T00:00:00Z"),
        *((text, text) for text in ("2026-11-26T12:00Z", "2026-11-26T12:00:00.5+01:00", "1763600400000")),
    ],
)
def test_time_is_sent_as_it_was_written_and_without_a_zone_is_utc_as_at_the_command_line(
    client: Client, asked: list[httpx.URL], moment: Any, sent: str
) -> None:
    assert list(client.history("EURUSD", start=moment)) == []
    assert asked[0].params["start"] == sent
    is_ms = sent.isdigit()
    assert at(str(moment)) == (
        datetime.fromtimestamp(int(sent) / 1000, UTC) if is_ms else datetime.fromisoformat(sent)
    )


def test_any_path_is_asked_for_as_the_reference_has_it(client: Client, asked: list[httpx.URL]) -> None:
    client.get("/api/market/{symbol}", {"symbol": "EUR/USD"}, {"bars": 3})
    client.get("/api/market/EURUSD", None, {"bars": 3}, timeframe="1m")
    client.get("session")
    paths = [(url.raw_path.decode()) for url in asked]
    assert paths == ["/api/market/EUR%2FUSD?bars=3", "/api/market/EURUSD?bars=3&timeframe=1m", "/api/session"]
    with pytest.raises(ValueError, match="needs a value"):
        client.get("/api/market/{symbol}", {"symbol": ""})


CALLS: list[Callable[[Client, str], Any]] = [
    Client.history,
    Client.quote,
    Client.market,
    Client.order_flow_buckets,
    Client.ticks,
    Client.analysis,
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("symbol", ["EUR/USD", "../limits", ".."])
def test_what_leads_to_another_path_is_no_symbol(
    client: Client, asked: list[httpx.URL], call: Callable[[Client, str], Any], symbol: str
) -> None:
    with pytest.raises(ApiError, match=f"There is no such symbol: {re.escape(symbol)}") as refused:
        call(client, symbol)
    assert (refused.value.code, refused.value.status) == ("symbol_not_found", 404)
    with pytest.raises(ValueError, match="The symbol is empty"):
        call(client, "")
    assert asked == []
