"""The newcomer's first minute, from an empty folder."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

import httpx
import pytest

from demo.seeding import MOST_MAKERS
from tests.patience import PATIENCE_S, wait_until
from tests.programs.running import Serve
from tests.reliability.clients.subscribed import subscribed

Get = Callable[..., httpx.Response]
TIMEFRAMES = {"1m": 60, "5m": 300, "15m": 900, "1h": 3600, "4h": 14_400, "1d": 86_400}


def test_banner_says_what_a_newcomer_needs_and_shows_progress(demo: Serve) -> None:
    needed = ("/docs/api", "/settings/keys", "/admin/", "Demo staff login", "curl -H", "Ctrl-C")
    assert [words for words in (demo.url, *needed) if words not in demo.output] == []
    before_the_banner, after_it = demo.output.split("Tickwire serves")
    assert "EURUSD (" in before_the_banner
    made = re.findall(r"The demo's past is being made: (\d+) of (\d+) instruments", after_it)
    (wanted,) = {int(number) for _, number in made}
    assert wanted > 20
    # Who looks after another has made the last one says what is made next instead.
    assert wanted - MOST_MAKERS <= len(made) < wanted
    assert after_it.count("The demo's past is complete") == 1


def test_links_keys_and_the_curl_line_of_the_banner_work(demo: Serve, keys: dict[str, str]) -> None:
    address = next(word for word in demo.output.split() if "/demo-login/" in word)
    with httpx.Client(follow_redirects=True, timeout=PATIENCE_S) as browser:
        form = browser.get(address)
        token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', form.text)
        assert token is not None
        answer = browser.post(address, data={"csrfmiddlewaretoken": token[1]})
    assert (answer.status_code, answer.url.path) == (200, "/admin/")
    for tier in ("free", "pro", "premium"):
        response = httpx.get(f"{demo.url}/api/limits", headers={"X-API-Key": keys[tier]})
        assert (response.status_code, response.json()["tier"]) == (200, tier)
    line = next(line for line in demo.output.splitlines() if line.strip().startswith("curl"))
    key, url = line.split("X-API-Key: ")[1].split('" ')
    assert httpx.get(url.strip(), headers={"X-API-Key": key}).json()["symbol"] == "BTCUSD"


def test_there_are_instruments_of_all_five_types(get: Get) -> None:
    items = get("/api/symbols").json()["items"]

    assert len(items) >= 14
    assert {item["type"] for item in items} == {"forex", "commodity", "crypto", "index", "stock"}
    assert {"EURUSD", "GBPUSD", "USDJPY", "XAUUSD", "BTCUSD", "ETHUSD", "US500", "AAPL"} <= {
        i["symbol"] for i in items
    }


@pytest.mark.parametrize("timeframe", TIMEFRAMES)
def test_500_bars_are_full_for_every_instrument(get: Get, timeframe: str) -> None:
    for item in get("/api/symbols").json()["items"]:
        ohlcv = get(f"/api/market/{item['symbol']}?bars=500&timeframe={timeframe}").json()["ohlcv"]

        times = [candle["time"] for candle in ohlcv]
        assert len(times) == 500, item["symbol"]
        assert times == sorted(set(times)), item["symbol"]
        assert all(
            c["low"] <= min(c["open"], c["close"]) <= max(c["open"], c["close"]) <= c["high"] for c in ohlcv
        )


@pytest.mark.parametrize("symbol", ["BTCUSD", "ETHUSD"])
def test_crypto_ticks_at_least_four_times_a_second(demo: Serve, keys: dict[str, str], symbol: str) -> None:
    """By the ticks' own times: on a slow machine they come late, and are no fewer in each whole second."""
    with subscribed(demo.port, keys["premium"], [symbol]) as (socket, _):
        times_ms = [json.loads(socket.recv(PATIENCE_S))["time"] for _ in range(39)]

    seconds = Counter(time_ms // 1000 for time_ms in times_ms)
    whole = range(times_ms[0] // 1000 + 1, times_ms[-1] // 1000)
    assert len(whole) >= 2
    assert all(seconds[second] >= 4 for second in whole)


def test_a_house_publishes_on_what_is_live(get: Get) -> None:
    """Of twenty markets one suggests something."""

    def houses() -> list[dict[str, str]]:
        return [each for each in get("/api/signals").json()["items"] if "house" in each["user"]]

    wait_until(houses)
    (house, *_) = houses()
    assert get(f"/api/signals/{house['id']}/proof").json()["entry"]["evidence"]["source"] == "tick"
