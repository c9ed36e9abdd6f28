"""Engines say over a port of their own which of them leads, and whether they could."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from redis import Redis

from tests.patience import PATIENCE_S, wait_until
from tests.programs.services import free_port, redis
from tests.reliability.services.engine_processes import EngineProcess, engine_process
from tests.reliability.services.processes import Installation

pytestmark = pytest.mark.served

LEADS = "tickwire_engine_leads 1.0"


def ask(port: int, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{path}", headers={"Host": "10.1.2.3"}, timeout=PATIENCE_S)


def is_ready(port: int, role: str) -> bool:
    try:
        answer = ask(port, "/readyz")
    except httpx.TransportError:
        return False
    return answer.status_code == 200 and answer.json()["role"] == role


class Engines:
    def __init__(self, leader: EngineProcess, leads_at: int, stands_in_at: int, redis_url: str) -> None:
        self.leader, self.leads_at, self.stands_in_at = leader, leads_at, stands_in_at
        self.redis_url = redis_url


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    directory: Path = tmp_path_factory.mktemp("engines")
    with ExitStack() as stack:
        url = stack.enter_context(redis(directory))
        installation = Installation(directory, f"sqlite:///{directory / 'x.sqlite3'}", url)
        assert installation.manage("migrate", "--verbosity", "0").returncode == 0
        assert installation.manage("load_instruments").returncode == 0
        first, second = free_port(), free_port()
        leader = stack.enter_context(engine_process(installation, 1, {"ENGINE_PORT": str(first)}))
        wait_until(lambda: is_ready(first, "leader"))
        stack.enter_context(engine_process(installation, 2, {"ENGINE_PORT": str(second)}))
        wait_until(lambda: is_ready(second, "standby"))
        yield Engines(leader, first, second, url)


def test_leader_has_the_market_and_a_stand_in_only_itself(engines: Engines) -> None:
    leader, stand_in = ask(engines.leads_at, "/metrics").text, ask(engines.stands_in_at, "/metrics").text
    assert LEADS in leader
    assert "tickwire_engine_up 1.0" in leader
    assert "tickwire_instruments{" in leader
    assert "tickwire_engine_leads 0.0" in stand_in
    assert "tickwire_instruments{" not in stand_in
    assert "process_start_time_seconds" in stand_in


@pytest.mark.parametrize("path", ["/livez", "/healthz"])
def test_both_live(engines: Engines, path: str) -> None:
    assert [ask(port, path).status_code for port in (engines.leads_at, engines.stands_in_at)] == [200, 200]


def test_neither_is_ready_while_redis_is_full(engines: Engines) -> None:
    def said() -> list[tuple[int, dict[str, str]]]:
        answers = [ask(port, "/readyz") for port in (engines.leads_at, engines.stands_in_at)]
        return [(answer.status_code, answer.json()["checks"]) for answer in answers]

    with Redis.from_url(engines.redis_url) as client:
        client.config_set("maxmemory", 1)
        full = {"database": "ok", "redis": "full"}
        wait_until(lambda: said() == [(503, full | {"engine": "ok", "bus": "full"}), (503, full)])
        assert "tickwire_bus_full 1.0" in ask(engines.leads_at, "/metrics").text
        client.config_set("maxmemory", 0)
    wait_until(lambda: is_ready(engines.leads_at, "leader") and is_ready(engines.stands_in_at, "standby"))


def test_stand_in_leads_when_the_leader_is_killed(engines: Engines) -> None:
    os.kill(engines.leader.pid, signal.SIGKILL)
    wait_until(lambda: is_ready(engines.stands_in_at, "leader"))
    assert LEADS in ask(engines.stands_in_at, "/metrics").text
