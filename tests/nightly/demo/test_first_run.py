"""The newcomer's first minute, from an empty folder."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from demo.seeding import MOST_MAKERS
from tests.patience import PATIENCE_S, wait_until
from tests.programs.commands import manage
from tests.programs.running import Serve

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


def test_an_hour_is_the_aggregate_of_its_minutes(get: Get) -> None:
    minutes = get("/api/market/BTCUSD?timeframe=1m&bars=500&closed_only=true").json()["ohlcv"]
    hours = get("/api/market/BTCUSD?timeframe=1h&bars=8&closed_only=true").json()["ohlcv"]

    whole = [hour for hour in hours if minutes[0]["time"] <= hour["time"]]
    assert len(whole) >= 6
    for hour in whole:
        within = [minute for minute in minutes if minute["time"][:13] == hour["time"][:13]]
        assert hour["open"] == within[0]["open"]
        assert hour["close"] == within[-1]["close"]
        assert hour["high"] == max(minute["high"] for minute in within)
        assert hour["low"] == min(minute["low"] for minute in within)
        assert hour["volume"] == pytest.approx(sum(minute["volume"] for minute in within))


@pytest.mark.parametrize("symbol", ["BTCUSD", "ETHUSD"])
def test_crypto_ticks_at_least_four_times_a_second(demo: Serve, keys: dict[str, str], symbol: str) -> None:
    """By the ticks' own times: on a slow machine they come late, and are no fewer in each whole second."""
    with connect(f"ws://127.0.0.1:{demo.port}/ws/market", open_timeout=PATIENCE_S) as socket:
        socket.send(json.dumps({"action": "subscribe", "symbols": [symbol], "api_key": keys["premium"]}))
        times_ms = [json.loads(socket.recv(PATIENCE_S))["time"] for _ in range(40)][1:]

    seconds = Counter(time_ms // 1000 for time_ms in times_ms)
    whole = range(times_ms[0] // 1000 + 1, times_ms[-1] // 1000)
    assert len(whole) >= 2
    assert all(seconds[second] >= 4 for second in whole)


def test_every_instrument_has_a_quote_though_its_market_is_closed(get: Get) -> None:
    states = {}
    for item in get("/api/symbols?expand=state").json()["items"]:
        response = get(f"/api/market/{item['symbol']}/quote")
        assert response.status_code == 200, item["symbol"]
        states[item["symbol"]] = response.headers["X-Market-State"]
        assert states[item["symbol"]] == item["state"]

    assert states["BTCUSD"] == "open"
    assert set(states.values()) <= {"open", "closed"}


def test_signals_of_several_publishers_are_active_and_closed_and_more_are_published_soon(get: Get) -> None:
    active = get("/api/signals?limit=500").json()["items"]
    closed = get("/api/signals?limit=500&status=closed").json()["items"]
    assert (len(active) >= 8, len(closed) >= 40) == (True, True)
    assert len({signal["user"] for signal in active + closed}) >= 3
    assert {"take_profit", "stop_loss"} <= {signal["close_reason"] for signal in closed}

    def of_the_house() -> list[Any]:
        return [each for each in get("/api/signals").json()["items"] if "house" in each["user"]]

    wait_until(of_the_house)
    proof = get(f"/api/signals/{of_the_house()[0]['id']}/proof").json()
    assert proof["entry"]["evidence"]["source"] == "tick"


def test_results_follow_from_entry_and_close(get: Get) -> None:
    pips = {i["symbol"]: Decimal(str(i["pip_size"])) for i in get("/api/symbols").json()["items"]}

    for signal in get("/api/signals?limit=500&status=closed").json()["items"]:
        sign = 1 if signal["direction"] == "buy" else -1
        gained = sign * (Decimal(str(signal["close_price"])) - Decimal(str(signal["entry"])))
        exact = gained / pips[signal["symbol"]]
        assert abs(Decimal(str(signal["pnl"])) - exact) <= Decimal("0.05"), signal
        reason = signal["close_reason"]
        assert reason == "expired" or (signal["pnl"] > 0) == (reason == "take_profit")


def test_news_cover_all_four_categories(get: Get) -> None:
    items = get("/api/news?limit=500").json()["items"]

    assert {item["category"] for item in items} == {"forex", "gold", "crypto", "macro"}
    assert {item["sentiment"] for item in items} == {"bullish", "neutral", "bearish"}


def test_a_key_issued_beside_the_service_works_until_it_is_revoked(demo: Serve, var_dir: Path) -> None:
    issued = manage(var_dir, "issue_key", "alice", "--tier", "pro", "--name", "bot")
    key = issued.stdout.strip()
    headers: Any = {"X-API-Key": key}

    assert (issued.returncode, issued.stdout) == (0, f"{key}\n")
    assert httpx.get(f"{demo.url}/api/session", headers=headers).headers["X-RateLimit-Limit"] == "120"
    assert manage(var_dir, "revoke_key", key[:16]).returncode == 0
    wait_until(lambda: httpx.get(f"{demo.url}/api/session", headers=headers).status_code == 401)
