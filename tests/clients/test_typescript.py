"""The TypeScript client: it compiles against the reference, asks, walks over history, and resumes."""

from __future__ import annotations

import io
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from core import clock
from core.times import MINUTE_MS
from market.prices.candles import DAY_MS
from tests.client import Server, drop_sockets
from tests.contract.market.stored_minutes import minutes, store
from tests.contract.streams.publishing import publish_news, publish_signal
from tests.contract.streams.ticker import Ticker, ticking
from tests.factories import make_account, make_instrument, make_key, make_tier, make_user, put_quote
from tests.patience import PATIENCE_S

from .conftest import CLIENT
from .history.keeping import (
    BUSY,
    CUT_SHORT,
    HUNG_UP,
    IN_FRONT,
    START_MS,
    Keeper,
    in_json,
    iso,
    keeping,
    make_candles,
)

pytestmark = [pytest.mark.served, pytest.mark.usefixtures("built")]

# Node has a global WebSocket from 22 on, and before it behind this flag.
FLAGS = ("--experimental-websocket", "--no-warnings")
DRIVER = "tests/clients/typescript.mjs"
SYMBOL = "EURUSD"
TYPES = "tests/clients/types/types.mts"


@pytest.fixture
def key(server: Server) -> str:
    make_instrument(SYMBOL)
    return make_key(make_account(tier=make_tier("roomy", streams=10)))


@pytest.fixture
def ticker(server: Server, key: str) -> Iterator[Ticker]:
    with ticking(server) as made:
        yield made


class Driver:
    """A running client, line by line."""

    def __init__(self, url: str, key: str, *words: str) -> None:
        command = ["node", *FLAGS, DRIVER, url, key, *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        heard: dict[str, Any] = json.loads(self.process.stdout.readline())
        return heard


def ran(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["node", *command], capture_output=True, text=True, timeout=PATIENCE_S)


def said(url: str, what: str, *words: object, key: str = "tw_live_any") -> list[dict[str, Any]]:
    done = ran(
        *FLAGS,
        DRIVER,
        url,
        key,
        what,
        *(each if isinstance(each, str) else json.dumps(each) for each in words),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_types_are_those_of_the_reference(server: Server, modules: Path, tmp_path: Path) -> None:
    made = tmp_path / "schema.ts"
    done = ran(modules / "openapi-typescript/bin/cli.js", f"{server.url}/openapi.json", "--output", made)
    assert done.returncode == 0, done.stderr
    assert made.read_text() == (CLIENT / "schema.d.ts").read_text(), "npm run types makes them anew"


def test_answers_and_frames_have_the_types_of_the_reference(modules: Path) -> None:
    """Each line that must not compile is marked as such, so that tsc complains if it does."""
    options = ("--noEmit", "--strict", "--skipLibCheck", "--target", "ES2022", "--module", "NodeNext")
    done = ran(modules / "typescript/bin/tsc", *options, "--lib", "ES2022,DOM", TYPES)
    assert (done.returncode, done.stdout) == (0, "")


def test_answers_and_refusals(server: Server, key: str) -> None:
    put_quote(SYMBOL, 1.0841, 1.08424)
    assert said(server.url, "quote", "eurusd", key=key)[0]["bid"] == 1.0841
    path = ("/api/market/{symbol}", {"symbol": SYMBOL}, {"timeframe": "2h"})
    (refused,) = said(server.url, "get", *path, key=key)
    named = [refused[name] for name in ("name", "code", "field")]
    assert named == ["ApiError", "invalid_timeframe", "timeframe"]
    assert refused["requestId"]
    signal = publish_signal(SYMBOL, make_user("marta"))
    one, of_publisher = said(server.url, "signal", signal, key=key)
    assert (one["user"], [each["id"] for each in of_publisher["items"]]) == ("marta", [signal])


def test_service_that_is_not_there_is_named_with_its_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        (told,) = said(url, "quote", SYMBOL)
    assert told["name"] == "ServiceUnreachable"
    assert url in told["message"]
    assert "ECONNREFUSED" in told["message"]
    assert told["message"].endswith("Check the address (the option url), and whether the service is running.")


def test_broken_stream_goes_on_where_it_was_and_says_what_cannot_be_had_again(
    server: Server, key: str, ticker: Ticker
) -> None:
    ticker(SYMBOL)
    with Driver(server.url, key, "watch", SYMBOL) as client:
        heard = [client.hear()["seq"]]
        for _ in range(3):
            drop_sockets(server)
            ticker(SYMBOL, 5)
            heard += [client.hear()["seq"] for _ in range(5)]
        assert heard == list(range(heard[0], heard[0] + 16))
        drop_sockets(server)
        ticker(SYMBOL, 1_500)
        missed = client.hear()["missed"]
        assert (missed["symbol"], missed["first"], missed["last"]) == (
            SYMBOL,
            heard[-1] + 1,
            heard[-1] + 1_500,
        )


def test_candles_go_on_where_they_were(server: Server, key: str, ticker: Ticker) -> None:
    now = clock.now_ms()
    day_ms = now - now % DAY_MS - DAY_MS
    ticker.at(SYMBOL, day_ms, day_ms + MINUTE_MS)
    with Driver(server.url, key, "candles", SYMBOL) as client:
        heard = [client.hear()]
        for minute in range(2, 5):
            drop_sockets(server)
            ticker.at(SYMBOL, day_ms + minute * MINUTE_MS)
            heard.append(client.hear())
    first = heard[0]["seq"]
    found = [(frame["timeframe"], frame["closed"], frame["seq"]) for frame in heard]
    assert found == [("1m", True, first + number) for number in range(4)]


@pytest.mark.parametrize("feed", ["signals", "news"])
def test_what_was_published_meanwhile_is_replayed(server: Server, key: str, feed: str) -> None:
    publisher = make_user("marta")

    def publish() -> str:
        # The driver asks for news of gold alone.
        publish_news(SYMBOL, category="forex")
        return (
            publish_signal(SYMBOL, publisher) if feed == "signals" else publish_news(SYMBOL, category="gold")
        )

    since = publish()
    published = [publish() for _ in range(2)]
    with Driver(server.url, key, feed, since) as client:
        assert [str(client.hear()["id"]) for _ in published] == published
        drop_sockets(server)
        later = publish()
        assert str(client.hear()["id"]) == later


def test_bad_key_ends_the_stream(server: Server) -> None:
    (told,) = said(server.url, "watch", SYMBOL, key="tw_live_wrong")
    assert (told["name"], told["code"]) == ("StreamError", "invalid_api_key")


def test_whoever_leaves_while_nothing_comes_keeps_no_socket(server: Server, key: str) -> None:
    with Driver(server.url, key, "leave", SYMBOL) as client:
        assert client.hear() == {"done": True}
        assert client.process.wait(PATIENCE_S) == 0


def test_older_node_is_told_what_a_stream_needs() -> None:
    # Node has a global WebSocket from 22 on, and this flag takes it away.
    flags = (
        [] if ran("-p", "typeof WebSocket").stdout.strip() == "undefined" else ["--no-experimental-websocket"]
    )
    done = ran("--no-warnings", *flags, DRIVER, "http://127.0.0.1:9", "tw_live_any", "watch", SYMBOL)
    told = json.loads(done.stdout)
    assert told["name"] == "TickwireError"
    assert "use Node 22 or newer, or pass the class of the package ws" in told["message"]


# History, page by page.
@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with keeping(Keeper(make_candles(500))) as kept:
        yield kept


def walked(keeper: Keeper, **options: Any) -> Any:
    return said(keeper.url, "history", {"limit": 100} | options)


def test_walk_has_every_candle_once_and_in_order_through_whatever_happens(keeper: Keeper) -> None:
    keeper.mishaps = {1: BUSY, 3: CUT_SHORT, 5: HUNG_UP, 7: IN_FRONT}
    assert walked(keeper) == keeper.candles
    cursors = [request.query.get("cursor") for request in keeper.asked]
    assert [cursors[failed] for failed in keeper.mishaps] == [
        cursors[failed + 1] for failed in keeper.mishaps
    ]
    assert (len(cursors), len(set(cursors))) == (9, 5)
    assert {request.headers["user-agent"].partition("/")[0] for request in keeper.asked} == {
        "tickwire-typescript"
    }
    keeper.mishaps.clear()
    pages = said(keeper.url, "pages", {"limit": 200})
    assert [(len(page["candles"]), page["next"] is None) for page in pages] == [
        *((200, False), (200, False), (100, True)),
    ]
    keeper.candles.clear()
    assert walked(keeper) == []


def test_pages_that_fail_again_and_again_end_the_walk_with_a_place_to_go_on(keeper: Keeper) -> None:
    keeper.mishaps = dict.fromkeys(range(1, 4), HUNG_UP)
    *came, error = said(keeper.url, "history", {"limit": 100}, {"walkRetries": 2})
    assert error["name"] == "WalkInterrupted"
    assert "in 3 attempts" in error["message"]
    assert came + walked(keeper, cursor=error["cursor"]) == keeper.candles
    asked = len(keeper.asked)
    (refused,) = walked(keeper, cursor="5.altered")
    assert (refused["code"], len(keeper.asked)) == ("invalid_cursor", asked + 1)


def test_span_is_dates_texts_or_milliseconds_and_utc_without_a_zone(keeper: Keeper) -> None:
    for span in (
        {"start": START_MS, "end": {"date": START_MS + 1}},
        {"start": "2026-11-20", "end": "2026-11-20T12:00"},
        {"start": "2026-11-20T12:00+01:00", "end": START_MS},
    ):
        walked(keeper, **span)
    # One candle or none: a page each.
    assert [(request.query["start"], request.query["end"]) for request in keeper.asked] == [
        (str(START_MS), iso(START_MS + 1).replace("001000Z", "001Z")),
        ("2026-11-20T00:00Z", "2026-11-20T12:00Z"),
        ("2026-11-20T12:00+01:00", str(START_MS)),
    ]


def test_batches_are_asked_for_by_their_paths_and_an_empty_list_is_not_all(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "answer", lambda _: in_json({"items": [], "count": 0, "rejected": []}))
    said(keeper.url, "batches", ["EURUSD", "BTCUSD"], START_MS)
    (error,) = said(keeper.url, "quotes", [])
    assert error["message"].startswith("The list of symbols is empty")
    assert [(request.path, request.query) for request in keeper.asked] == [
        ("/api/quotes", {"symbols": "EURUSD,BTCUSD"}),
        ("/api/orderflow/EURUSD", {"start": str(START_MS), "limit": "5"}),
    ]


def test_walk_over_the_real_service_equals_the_export(server: Server, key: str) -> None:
    store(SYMBOL, minutes(1_234))
    written = io.StringIO()
    call_command("export_candles", SYMBOL, "1m", format="jsonl", stdout=written)
    expected = [json.loads(line) for line in written.getvalue().splitlines()]
    assert len(expected) == 1_234
    assert said(server.url, "history", {"limit": 500}, key=key) == expected
