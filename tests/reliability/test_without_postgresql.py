"""PostgreSQL stops or is killed: quotes, candles, new streams and pushed ticks go on with known keys."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from redis import Redis
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from accounts.event_channel import channel_of
from accounts.keys import generate, prefix
from accounts.models import ApiKey
from market.ingest.keys import issue_ingest_key
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.patience import PATIENCE_S
from tests.reliability.conftest import Tell
from tests.reliability.engine_processes import engines
from tests.reliability.engines import poll
from tests.reliability.faults import PrivatePostgres, PrivateRedis
from tests.reliability.processes import Installation, Process, http

SYMBOL = "OUTLASTS"
OUTAGE_S, WITHIN_S = 8.0, 30.0
PAGES, PAGE_WITHIN_S = 12, 60.0
pytestmark = pytest.mark.usefixtures("rows")


class Running(NamedTuple):
    """A service in which two keys and an ingest key are known, on a database that a test takes away."""

    installation: Installation
    server: Process
    database: PrivatePostgres
    stack: ExitStack
    redis: PrivateRedis
    key: str
    doomed: str
    unused: str
    ingest_key: str

    def push(self, bid: float) -> Any:
        tick = {"symbol": SYMBOL, "bid": bid, "ask": bid + 0.5, "time": time.time_ns() // 1_000_000}
        answer = http.post(
            f"{self.server.url}/ingest/ticks", json=[tick], headers={"X-Ingest-Key": self.ingest_key}
        )
        return answer.json().get("accepted", answer.text)

    def page(self) -> int:
        """One that asks who is there."""
        headers = {"Cookie": f"sessionid={'a' * 32}"}
        return http.get(
            f"{self.server.url}/accounts/login/", headers=headers, timeout=PAGE_WITHIN_S
        ).status_code

    def quote(self) -> float:
        return float(self.server.ask(f"/api/market/{SYMBOL}/quote", self.key).json()["bid"])

    @contextmanager
    def killed(self) -> Iterator[None]:
        self.stack.close()
        yield
        self.stack.enter_context(self.database.running())

    def without_database(self, how: str) -> AbstractContextManager[None]:
        return self.database.paused() if how == "stopped" else self.killed()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    database, redis = PrivatePostgres(tmp_path), PrivateRedis(tmp_path)
    with ExitStack() as stack, ExitStack() as with_database:
        with_database.enter_context(database.running())
        stack.enter_context(redis.running())
        installation = Installation(tmp_path, database.url, redis.url)
        with installation.orm():
            make_instrument(SYMBOL, source="push")
            account = make_account(tier=make_tier("roomy", requests_per_minute=100_000))
            key, doomed, unused = (make_key(account) for _ in range(3))
            ingest_key = issue_ingest_key("desk", by="test")[1]
        stack.enter_context(engines(installation, 1))
        (server,) = stack.enter_context(installation.serve(1))
        running = Running(
            installation, server, database, with_database, redis, key, doomed, unused, ingest_key
        )
        poll(lambda: running.push(1.0) == 1, WITHIN_S)
        poll(lambda: server.ask(f"/api/market/{SYMBOL}/quote", doomed).status_code == 200, WITHIN_S)
        assert running.quote() == 1.0
        yield running


def first_tick_of_a_new_stream(service: Running) -> dict[str, Any]:
    with connect(f"ws://127.0.0.1:{service.server.port}/ws/market") as socket:
        wanted = {
            "action": "subscribe",
            "symbols": [SYMBOL],
            "api_key": service.key,
            "features": ["snapshot"],
        }
        socket.send(json.dumps(wanted))
        assert json.loads(socket.recv(10))["type"] == "subscribed"
        frame: dict[str, Any] = json.loads(socket.recv(10))
        return frame


@pytest.mark.row("8, 52", "quotes, streams and pushed ticks refused 0; the rest 503 within 3 s, 500s 0")
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_quotes_streams_and_pushed_ticks_outlast_the_database(service: Running, how: str, tell: Tell) -> None:
    seen: dict[str, Counter[Any]] = {"pushed": Counter(), "quoted": Counter(), "others": Counter()}
    slowest_s, bid = 0.0, 2.0
    with service.without_database(how):
        # Before anything else finds the connections gone, and more than there are threads for them.
        with ThreadPoolExecutor(PAGES) as pool:
            pages = Counter(pool.map(lambda _: service.page(), range(PAGES)))
        ends_at = time.monotonic() + OUTAGE_S
        while time.monotonic() < ends_at:
            bid += 1
            seen["pushed"][service.push(bid)] += 1
            poll(lambda: service.quote() == bid, WITHIN_S)  # noqa: B023 - asked before it changes
            candles = service.server.ask(f"/api/market/{SYMBOL}?timeframe=1m", service.key)
            seen["quoted"][candles.status_code] += 1
            began_at = time.monotonic()
            others = [("/api/signals", service.key), ("/api/symbols", service.unused)]
            others.append((f"/api/analysis/{SYMBOL}", service.key))
            for path, key in others:
                seen["others"][service.server.ask(path, key).status_code] += 1
            slowest_s = max(slowest_s, (time.monotonic() - began_at) / len(others))
            assert first_tick_of_a_new_stream(service)["bid"] == bid
        stranger = service.server.ask("/api/symbols", generate()).status_code
        trusted = service.server.metric("tickwire_keys_trusted_total")
    poll(lambda: service.server.ask("/api/signals", service.key).status_code == 200, WITHIN_S)
    tell(f"{how} for {OUTAGE_S:.0f} s: { ({name: dict(count) for name, count in seen.items()}) }")
    tell(f"slowest refusal {slowest_s:.1f} s, let in from memory {trusted:.0f} times, a stranger {stranger}")
    assert set(seen["pushed"]) == {1}
    assert set(seen["quoted"]) == {200}
    # Known in another process only, or never: nobody can tell while the database is away.
    assert set(seen["others"]) <= {200, 503}
    assert seen["others"][503] > 0
    assert pages == {503: PAGES}
    assert stranger == 503
    assert trusted > 0
    poll(lambda: service.server.ask("/api/symbols", generate()).status_code == 401, WITHIN_S)
    assert service.page() == 200


@pytest.mark.row("15", "a revocation holds also where the database cannot be asked")
def test_revocation_travels_over_redis_where_the_database_is_away(service: Running) -> None:
    with service.installation.orm():
        doomed = ApiKey.objects.get(prefix=prefix(service.doomed))
    facts = {"account": doomed.account_id, "key": doomed.pk, "prefix": doomed.prefix}
    with service.without_database("stopped"):
        poll(lambda: service.server.metric("tickwire_control_events_age_seconds") > 2, WITHIN_S)
        assert service.server.ask("/api/symbols", service.doomed).status_code == 200
        # As a process tells it that still reaches the database.
        told = {"position": 10**9, "kind": "key.revoked", "facts": facts}
        with Redis.from_url(service.redis.url) as client:
            client.publish(channel_of(service.redis.url), json.dumps(told))
        poll(lambda: service.server.ask("/api/symbols", service.doomed).status_code != 200, WITHIN_S)
        assert service.server.metric("tickwire_control_events_cut_off") == 0
        with service.redis.paused():
            poll(lambda: service.server.metric("tickwire_control_events_cut_off") == 1, WITHIN_S)


def opened(server: Process, key: str) -> ClientConnection:
    socket = connect(f"ws://127.0.0.1:{server.port}/ws/market", compression=None)
    socket.send(json.dumps({"action": "subscribe", "symbols": [SYMBOL], "api_key": key}))
    assert json.loads(socket.recv(WITHIN_S))["type"] == "subscribed"
    return socket


@pytest.mark.row("8, 52", "streams and requests end when what is known of keys is too old, and not before")
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_trust_in_known_keys_ends_also_for_open_streams(service: Running, how: str, tell: Tell) -> None:
    with service.installation.serve(1, KEYS_TRUSTED_FOR_S="3") as (wary,):
        assert wary.ask("/api/symbols", service.key).status_code == 200
        with opened(service.server, service.key) as trusting, opened(wary, service.key) as socket:
            with service.without_database(how):
                refusal = json.loads(socket.recv(PATIENCE_S))
                with pytest.raises(ConnectionClosed) as closed:
                    socket.recv(PATIENCE_S)
                age_s = wary.metric("tickwire_control_events_age_seconds")
                assert wary.ask("/api/symbols", service.key).status_code == 503
                # Beside it the span is 15 minutes.
                poll(lambda: service.push(7.0) == 1, WITHIN_S)
                assert json.loads(trusting.recv(PATIENCE_S))["bid"] == 7.0
            poll(lambda: wary.ask("/api/symbols", service.key).status_code == 200, WITHIN_S)
            opened(wary, service.key).close()
    tell(f"{how}: ended when nothing had been read for {age_s:.0f} s, of 3 allowed")
    assert (refusal["error"]["code"], refusal["fatal"], refusal["retry"]) == ("internal_error", True, True)
    assert "whether your key still holds" in refusal["error"]["message"]
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4500
    assert age_s >= 3
