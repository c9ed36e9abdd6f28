"""The Python client against the real service: REST, streams that resume, the command line."""

from __future__ import annotations

import asyncio
import csv
import io
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from tickwire import ApiError, AsyncClient, Client, StreamError
from tickwire.answers import read
from tickwire.cli.commands import newest_place
from tickwire.missed import Hole, Missed
from tickwire.session import CandleSession, Manner, Session

from core import clock
from market.prices.candles import TIMEFRAMES, interval_start
from market.prices.records import Tick
from news.models import NewsItem
from tests.client import Server, drop_sockets
from tests.contract.streams.publishing import publish_news, publish_signal
from tests.contract.streams.ticker import Ticker, ticking
from tests.factories import (
    NOON,
    make_account,
    make_instrument,
    make_key,
    make_news,
    make_tier,
    make_user,
    put_candles,
    put_quote,
)
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.served

SYMBOL = "EURUSD"
SCORED: dict[str, Any] = {"category": "forex", "status": "published", "sentiment_score": 0.4, "model": "test"}


@pytest.fixture
def key(server: Server) -> str:
    make_instrument(SYMBOL)
    return make_key(make_account(tier=make_tier("roomy", streams=10)))


@pytest.fixture
def client(server: Server, key: str) -> Iterator[Client]:
    with Client(key, server.url) as made:
        yield made


@pytest.fixture
def ticker(server: Server, key: str) -> Iterator[Ticker]:
    with ticking(server) as made:
        yield made


def test_every_path_of_rest_has_a_call(client: Client) -> None:
    put_quote(SYMBOL)
    make_news()
    signal = publish_signal(SYMBOL, make_user("marta"))
    answers = (
        *(client.symbols(expand=["digits"]), client.quote("eurusd"), client.market(SYMBOL, bars=3)),
        *(client.signals(status="all", symbol=SYMBOL), client.news(category=["forex"], expand=["id"])),
        *(client.signals(user="marta"), client.signal(signal), client.publisher("marta"), client.quotes()),
        *(client.session(), client.limits(), client.ledger(), client.calibration(), client.analysis(SYMBOL)),
    )
    assert all(isinstance(answer, dict) for answer in answers)
    quotes = client.quotes([SYMBOL, "NOPE"])
    assert [item["symbol"] for item in quotes["items"]] == [SYMBOL]
    assert quotes["rejected"] == [{"symbol": "NOPE", "code": "symbol_not_found"}]
    flow = client.order_flow_buckets(SYMBOL, start=0, end="2026-11-20T14:00:00Z", limit=5)
    assert flow == {"symbol": SYMBOL, "items": [], "count": 0, "next": None}


def test_refusal_says_what_is_allowed(client: Client) -> None:
    with pytest.raises(ApiError, match="timeframe must be one of") as refused:
        client.market(SYMBOL, timeframe="2h")
    assert (refused.value.code, refused.value.field) == ("invalid_timeframe", "timeframe")
    assert "1h" in (refused.value.allowed or [])
    with pytest.raises(ApiError) as refused:
        # A name with a slash stays one part of the path.
        client.publisher("../limits")
    assert refused.value.status == 404


def test_key_comes_from_the_variable_of_the_panel_or_its_former_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TICKWIRE_KEY", "TICKWIRE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="set TICKWIRE_KEY, or pass api_key"):
        Client()
    for name in ("TICKWIRE_API_KEY", "TICKWIRE_KEY"):
        monkeypatch.setenv(name, f"tw_live_{name}")
        with Client() as client:
            assert client.api_key == f"tw_live_{name}"


def test_a_text_is_one_name_and_not_its_letters(client: Client) -> None:
    put_quote(SYMBOL)
    gold = make_news(category="gold")
    assert client.quotes(SYMBOL)["rejected"] == client.quotes(f"{SYMBOL},{SYMBOL}")["rejected"] == []
    assert [item["id"] for item in client.news(category="gold", expand="id")["items"]] == [gold.pk]
    assert len(list(client.all_news(category="gold"))) == 1
    session = CandleSession("tw_live_any", [SYMBOL], "1h", forming=False)
    assert json.loads(session.subscribe())["timeframes"] == ["1h"]


def test_walks_over_news_and_signals_have_all_of_them_once(client: Client) -> None:
    # More than two pages have room for.
    minutes = [NOON + timedelta(minutes=number) for number in range(1_100)]
    items = [NewsItem(title=f"Item {at:%H:%M}", published_at=at, **SCORED) for at in minutes]
    titles = [item.title for item in NewsItem.objects.bulk_create(items)]
    put_quote(SYMBOL)
    signals = [publish_signal(SYMBOL, make_user(f"publisher{number}")) for number in range(3)]
    assert [item["title"] for item in client.all_news()] == titles[::-1]
    assert [item["id"] for item in client.all_signals(status="active")] == signals[::-1]
    assert [item["title"] for item in client.all_news(start=minutes[3])] == titles[:2:-1]


def test_candles_come_as_they_are_closed_and_go_on_over_a_broken_connection(
    client: Client, server: Server, ticker: Ticker
) -> None:
    missed: list[Missed] = []
    now = clock.now_ms()
    midnight_ms = now - now % 86_400_000
    ticker.at(SYMBOL, midnight_ms - 86_400_000, midnight_ms - 86_400_000 + 60_000)
    followed = client.follow_candles(SYMBOL, timeframes=["1m"], on_missed=missed.append)
    heard = [next(followed)]
    # The first is from before: by its time it is told from those that close from now on.
    assert heard[0]["time"] == midnight_ms - 86_400_000 + 60_000 < now
    assert heard[0].get("snapshot")
    for minute in range(2, 6):
        drop_sockets(server)
        ticker.at(SYMBOL, midnight_ms - 86_400_000 + minute * 60_000)
        heard.append(next(followed))
    seqs = [frame["seq"] for frame in heard]
    assert seqs == list(range(seqs[0], seqs[0] + 5))
    assert all(frame["closed"] for frame in heard)
    assert missed == []
    # Those that form come on request.
    forming = client.follow_candles(SYMBOL, timeframes=["1d"], forming=True)
    threading.Timer(0.1, ticker, (SYMBOL,)).start()
    while (frame := next(forming))["closed"]:
        pass
    assert frame["timeframe"] == "1d"


def test_gap_of_a_symbol_is_one_of_its_candles() -> None:
    missed: list[Missed] = []
    session = CandleSession("key", ["EURUSD", "XAUUSD"], ["1m"], False, Manner(missed.append))
    keys = {"EURUSD/1m": 7, "XAUUSD/1m": 8}
    reply = {"type": "subscribed", "symbols": [], "rejected": [], "epoch": "a", "positions": keys, "time": 1}
    assert session.hear(json.dumps(reply)) == []
    gap = {"type": "gap", "symbols": ["EURUSD"], "epoch": "b", "positions": {}, "time": 2}
    (hole,) = session.hear(json.dumps(gap))
    assert isinstance(hole, Hole)
    session.report(hole, hole.missed)
    assert missed == [Missed("EURUSD", "1m", None, None, 1, 2)]
    assert json.loads(session.subscribe())["resume"] == {"epoch": "b", "positions": {"XAUUSD/1m": 8}}


def test_broken_stream_goes_on_where_it_was_and_names_what_cannot_be_had_again(
    client: Client, server: Server, ticker: Ticker
) -> None:
    missed: list[Missed] = []
    ticker(SYMBOL)
    watched = client.watch(SYMBOL, on_missed=missed.append)
    first = next(watched)
    assert first.get("snapshot")
    heard = [first["seq"]]
    for _ in range(3):
        drop_sockets(server)
        ticker(SYMBOL, 5)
        heard += [tick["seq"] for tick in itertools.islice(watched, 5)]
    assert heard == list(range(heard[0], heard[0] + 16))
    assert missed == []
    (tick,) = ticker(SYMBOL)
    last = next(watched)
    assert last["bid"] == tick.bid
    drop_sockets(server)
    ticker(SYMBOL, 1_500)
    assert next(watched).get("snapshot")
    (hole,) = missed
    after = last["seq"] + 1
    assert (hole.symbol, hole.first, hole.last, hole.start_ms) == (SYMBOL, after, after + 1_499, last["time"])


def test_what_a_stream_cannot_replay_is_filled_over_rest(
    client: Client, server: Server, ticker: Ticker
) -> None:
    missed: list[Missed] = []
    ticker(SYMBOL)
    watched = client.watch(SYMBOL, on_missed=missed.append, fill=True)
    first = next(watched)
    drop_sockets(server)
    ticks = ticker(SYMBOL, 1_500)
    heard = list(itertools.islice(watched, 1_500))
    assert [(each["seq"], each["bid"]) for each in heard] == [
        (first["seq"] + number, tick.bid) for number, tick in enumerate(ticks, 1)
    ]
    assert next(watched).get("snapshot")
    assert [(hole.filled, hole.is_filled) for hole in missed] == [(1_500, True)]


@pytest.mark.parametrize("feed", ["signals", "news"])
def test_what_was_published_meanwhile_is_replayed(client: Client, server: Server, feed: str) -> None:
    publisher, missed = make_user("marta"), list[Missed]()

    def publish() -> str:
        publish_news(SYMBOL, category="forex")
        return (
            publish_signal(SYMBOL, publisher) if feed == "signals" else publish_news(SYMBOL, category="gold")
        )

    def follow(since: str) -> Iterator[Any]:
        if feed == "signals":
            return client.follow_signals(since=since, on_missed=missed.append)
        return client.follow_news(SYMBOL, categories=["gold"], since=since, on_missed=missed.append)

    published = [publish() for _ in range(3)]
    # Before the first that was heard, nothing is missed.
    assert str(next(follow("after:0"))["id"]) == published[0]
    followed = follow(published[0])
    assert [str(next(followed)["id"]) for _ in range(2)] == published[1:]
    drop_sockets(server)
    later = publish()
    assert (str(next(followed)["id"]), missed) == (later, [])


def test_command_follows_from_before_its_list_also_where_that_is_empty(client: Client) -> None:
    missed: list[Missed] = []
    start = newest_place(client)
    published = [publish_signal(SYMBOL, make_user("marta"))]
    followed = client.follow_signals(since=start, on_missed=missed.append)
    assert ([next(followed)["id"]], missed) == (published, [])
    assert newest_place(client) == published[0]


def test_bad_key_and_unknown_symbol_are_errors_and_not_a_silence(client: Client, server: Server) -> None:
    with pytest.raises(StreamError, match="NOPE"):
        next(client.watch("NOPE"))
    with Client("tw_live_wrong", server.url) as wrong, pytest.raises(StreamError) as refused:
        next(wrong.watch(SYMBOL))
    assert refused.value.code == "invalid_api_key"


def test_asynchronous_client_resumes_too(server: Server, key: str, ticker: Ticker) -> None:
    ticker(SYMBOL)

    async def hear() -> list[int]:
        async with AsyncClient(key, server.url) as client:
            assert (await client.session())["instruments_active"] == 1
            watched = client.watch(SYMBOL)
            heard = [(await anext(watched))["seq"]]
            await asyncio.to_thread(drop_sockets, server)
            await asyncio.to_thread(ticker, SYMBOL, 3)
            heard += [(await anext(watched))["seq"] for _ in range(3)]
        # A client that is closed ends its streams.
        assert [tick async for tick in watched] == []
        return heard

    heard = asyncio.run(asyncio.wait_for(hear(), PATIENCE_S))
    assert heard == list(range(heard[0], heard[0] + 4))


class Command:
    def __init__(self, server: Server, key: str) -> None:
        own = {"TICKWIRE_URL": server.url, "TICKWIRE_KEY": key, "PYTHONPATH": "clients/python"}
        self.environment = os.environ | own

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self._words(words), **self._options(), capture_output=True, timeout=PATIENCE_S)

    def lines(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(self._words(words), **self._options(), stdout=subprocess.PIPE)

    def _words(self, words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "tickwire", *words]

    def _options(self) -> dict[str, Any]:
        return {"env": self.environment, "text": True, "cwd": Path.cwd()}


@pytest.fixture
def command(server: Server, key: str) -> Command:
    return Command(server, key)


def test_command_prints_a_quote_in_full_and_says_in_one_line_what_is_wrong(
    command: Command, ticker: Ticker
) -> None:
    put_quote(SYMBOL, 1.0841, 1.08424)
    assert command("quote", "eurusd").stdout.startswith("EURUSD     1.0841 / 1.08424  spread 0.00014")
    make_instrument("TINY", digits=8)
    tick = Tick("TINY", 0.00003, 0.0000305, clock.now_ms(), 1.0)
    ticker.server.run(ticker.push([tick]))
    assert command("quote", "TINY").stdout.startswith("TINY       0.00003 / 0.0000305  spread 0.0000005")
    with command.lines("watch", "TINY", "--json") as process:
        assert process.stdout is not None
        assert '"bid": 0.00003, "ask": 0.0000305, "spread": 0.0000005, ' in process.stdout.readline()
        process.terminate()
    done = command("quote", "EURUSX")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "EURUSD" in done.stderr
    command.environment["TICKWIRE_KEY"] = "tw_live_of_another_service"
    done = command("quote", SYMBOL)
    where = f"It was sent to {command.environment['TICKWIRE_URL']}; TICKWIRE_URL or --url names another"
    assert (where in done.stderr, done.stderr.count("\n")) == (True, 1)


def test_command_writes_candles_as_csv(command: Command) -> None:
    step_ms = TIMEFRAMES["5m"]
    now_ms = interval_start(clock.now_ms(), step_ms)
    put_quote(SYMBOL)
    put_candles(SYMBOL, "5m", [now_ms - 2 * step_ms, now_ms - step_ms])
    done = command("candles", SYMBOL, "--timeframe", "5m", "--bars", "2", "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [set(row) for row in rows] == [{"time", "open", "high", "low", "close", "volume"}] * 2


def test_command_follows_signals(command: Command) -> None:
    publisher = make_user("marta")
    publish_signal(SYMBOL, publisher)
    with command.lines("signals", "--follow") as process:
        assert process.stdout is not None
        assert "by marta" in process.stdout.readline()
        publish_signal(SYMBOL, publisher)
        assert "buy  EURUSD" in process.stdout.readline()
        process.terminate()


def test_stream_that_cannot_be_opened_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    session = Session("market", "tw_live_any", [SYMBOL])
    for _ in range(5):
        assert session.wait_after_end(ConnectionRefusedError("nobody listens"))
    assert caplog.messages == ["/ws/market cannot be opened; trying again: nobody listens"]


def test_refusal_by_something_in_front_of_the_service_is_an_api_error() -> None:
    with pytest.raises(ApiError, match="answered 502") as refused:
        read(httpx.Response(502, json={"error": "bad gateway"}))
    assert (refused.value.status, refused.value.code) == (502, "")
