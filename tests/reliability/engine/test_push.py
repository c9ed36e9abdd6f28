"""Pushed ticks where the web processes and the engine are processes of their own."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from accounts.key_text import prefix_of
from market.models import IngestKey
from market.push.keys import LEAD, issue_ingest_key, revoke_ingest_key
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.services.engine_processes import EngineProcess, engines
from tests.reliability.services.engines import NEVER_CLOSING
from tests.reliability.services.processes import Installation, Process, http

WAITS: dict[str, Any] = {"open_timeout": PATIENCE_S, "ping_interval": None}
NONE_REFUSED = {"accepted": 3, "rejected": []}
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("pushed ticks", "every tick is acknowledged once and taken once"),
]


@pytest.fixture(scope="module")
def servers(scaled: Installation, django_db_blocker: Any) -> Iterator[list[Process]]:
    """Two web processes that know the instrument PUSHED, and no engine. The first soon gives up on one."""
    with django_db_blocker.unblock(), scaled.orm():
        make_instrument("PUSHED", source="push")
    with scaled.serve(1, DEADLINES_TIMES="1") as (prompt,), scaled.serve(1) as (patient,):
        yield [prompt, patient]


@pytest.fixture(scope="module")
def engine(scaled: Installation, servers: list[Process]) -> Iterator[EngineProcess]:
    # Or ticks that are sent again would come too late whenever their minute has ended meanwhile.
    with engines(scaled, 1, **NEVER_CLOSING) as (running,):
        yield running


@pytest.fixture
def key(scaled: Installation) -> str:
    with scaled.orm():
        return issue_ingest_key("desk", by="test")[1]


@pytest.fixture
def api_key(scaled: Installation) -> str:
    with scaled.orm():
        return make_key(make_account(tier=make_tier("roomy")))


def push(server: Process, key: str, body: Any) -> httpx.Response:
    return http.post(f"{server.url}/ingest/ticks", json=body, headers={"X-Ingest-Key": key})


def pushed(server: Process, key: str, body: Any) -> Any:
    answer = push(server, key, body)
    return answer.json() if answer.status_code == 200 else answer.json()["error"]["code"]


def three(bid: float) -> list[dict[str, Any]]:
    """Ticks of now with numbers that rise from call to call."""
    now_ms = time.time_ns() // 1_000_000
    ask = bid + 0.5
    return [
        {"symbol": "PUSHED", "bid": bid, "ask": ask, "time": now_ms + at, "seq": now_ms * 10 + at}
        for at in range(3)
    ]


def test_without_an_engine_the_error_says_when_to_retry(servers: list[Process], key: str) -> None:
    refused = push(servers[0], key, three(1))
    told = refused.json()["error"]
    assert (refused.status_code, told["code"]) == (503, "overloaded")
    assert told["message"].startswith("The market engine does not answer.")
    assert int(refused.headers["Retry-After"]) >= 1


def test_a_tick_pushed_to_one_process_is_quoted_by_the_other(
    servers: list[Process], engine: EngineProcess, key: str, api_key: str
) -> None:
    wait_until(lambda: pushed(servers[0], key, three(2)) == NONE_REFUSED)

    def quote() -> Any:
        return servers[1].ask("/api/market/PUSHED/quote", api_key).json()

    wait_until(lambda: quote().get("bid") == 2)
    assert quote()["ask"] == 2.5


def test_ticks_resent_after_a_timeout_are_taken_once(
    servers: list[Process], engine: EngineProcess, key: str
) -> None:
    ticks = three(3)
    with engine.stopped():
        assert pushed(servers[0], key, ticks) == "overloaded"
    wait_until(lambda: pushed(servers[0], key, []) != "overloaded")
    # What nobody waited for any more was not begun; what is acknowledged is known from then on.
    assert pushed(servers[1], key, ticks) == NONE_REFUSED
    again = pushed(servers[1], key, ticks)
    assert [tick["code"] for tick in again["rejected"]] == ["duplicate"] * 3


def test_a_revoked_key_closes_the_open_socket_and_fails_the_next_request(
    scaled: Installation, servers: list[Process], engine: EngineProcess, key: str
) -> None:
    url = f"ws://127.0.0.1:{servers[1].port}/ws/ingest"
    with connect(url, additional_headers={"X-Ingest-Key": key}, **WAITS) as socket:
        assert json.loads(socket.recv(PATIENCE_S))["type"] == "authenticated"
        for server in servers:
            wait_until(partial(is_answered, server, key, 200))
        with scaled.orm():
            revoke_ingest_key(IngestKey.objects.get(prefix=prefix_of(key, LEAD)), by="test")
        assert json.loads(socket.recv(PATIENCE_S))["error"]["code"] == "invalid_ingest_key"
        with pytest.raises(ConnectionClosed):
            socket.recv(PATIENCE_S)
        assert socket.close_code == 4401
    for server in servers:
        # Once each: an address that goes on with a dead key is told to wait.
        wait_until(partial(is_answered, server, key, 401))


def is_answered(server: Process, key: str, status: int) -> bool:
    return push(server, key, []).status_code == status


def test_an_api_key_cannot_push_ticks(servers: list[Process], api_key: str) -> None:
    assert pushed(servers[0], api_key, three(4)) == "invalid_ingest_key"
