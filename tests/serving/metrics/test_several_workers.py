"""`serve --workers` counts as one service, whichever worker is asked and whichever has ended."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.databases import prepared
from tests.patience import PATIENCE_S, wait_until
from tests.programs.services import free_port, redis
from tests.reliability.services.frozen import frozen
from tests.reliability.services.processes import Installation
from tests.reliability.services.supervised import Supervised, supervised

pytestmark = pytest.mark.served

TOKEN = "for-several-workers"
WORKERS = 2
ASKED = 12
REFUSED = r'^tickwire_http_refused_total\{reason="malformed"\} (\S+)$'


class Service:
    def __init__(self, running: Supervised, metrics_port: int) -> None:
        self.running, self.metrics_port = running, metrics_port

    def text(self) -> str:
        return httpx.get(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=PATIENCE_S).text

    def text_of_a_worker(self) -> str:
        """Of any: each request comes over a connection of its own."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Connection": "close"}
        answer = httpx.get(f"{self.running.server.url}/metrics", headers=headers, timeout=PATIENCE_S)
        assert answer.status_code == 200
        return answer.text

    def probe(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.metrics_port}{path}", timeout=PATIENCE_S)

    def send_malformed(self, count: int) -> None:
        for _ in range(count):
            with socket.create_connection(("127.0.0.1", self.running.server.port)) as connection:
                connection.sendall(b"nonsense\r\n\r\n")
                connection.recv(1024)


def value(pattern: str, text: str) -> float:
    found = re.search(pattern, text, re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory: Path = tmp_path_factory.mktemp("several-workers")
    with ExitStack() as stack:
        url = stack.enter_context(redis(directory))
        installation = Installation(directory, f"sqlite:///{directory / 'x.sqlite3'}", url)
        prepared.copy_sqlite(directory / "x.sqlite3")
        assert installation.manage("backup").returncode == 0
        port = free_port()
        # How soon a worker counts as silent is a subject here.
        changes = {"METRICS_PORT": str(port), "METRICS_TOKEN": TOKEN, "DEADLINES_TIMES": "1"}
        yield Service(stack.enter_context(supervised(installation, WORKERS, **changes)), port)


def test_whichever_is_asked_the_answer_is_of_all(service: Service) -> None:
    before = value(REFUSED, service.text())
    service.send_malformed(ASKED)
    seen = {value(REFUSED, service.text_of_a_worker()) for _ in range(ASKED)}
    assert seen == {before + ASKED} == {value(REFUSED, service.text())}


def test_each_worker_has_its_gauges_and_the_engine_is_told_once(service: Service) -> None:
    text = service.text()
    assert set(re.findall(r'^tickwire_engine_heard\{worker="(\d)"\}', text, re.MULTILINE)) == {"1", "2"}
    assert len(re.findall(r"^tickwire_engine_up ", text, re.MULTILINE)) == 1
    assert 'tickwire_workers{state="serving"} 2.0' in text


def test_age_of_the_last_backup_is_told_once(service: Service) -> None:
    wait_until(lambda: value(r"^tickwire_backup_age_seconds (\S+)$", service.text()) > 0)
    assert "tickwire_backup_age_seconds{" not in service.text()


def test_readiness_is_of_all_and_life_of_whoever_answers(service: Service) -> None:
    wait_until(lambda: service.probe("/readyz").status_code == 200)
    assert set(service.probe("/readyz").json()["workers"]) == {"1", "2"}
    assert service.probe("/livez").status_code == 200


def test_worker_that_stands_still_counts_with_what_it_said_last(service: Service) -> None:
    before = value(REFUSED, service.text())
    with frozen([service.running.serving[0]]):
        text = service.text()
        assert (value(REFUSED, text), value(r"^tickwire_workers_silent (\S+)$", text)) == (before, 1)
        answer = service.probe("/readyz")
        assert answer.status_code == 503
        assert {"status": "silent"} in answer.json()["workers"].values()
    wait_until(lambda: value(r"^tickwire_workers_silent (\S+)$", service.text()) == 0)


def test_restart_of_a_worker_lets_no_total_go_back(service: Service) -> None:
    service.send_malformed(ASKED)
    before = value(REFUSED, service.text())
    os.kill(service.running.serving[0], signal.SIGKILL)
    wait_until(lambda: 'tickwire_worker_ends_total{why="killed"} 1.0' in service.text())
    assert value(REFUSED, service.text()) == before
    service.running.wait_for(WORKERS)
    assert value(REFUSED, service.text()) == before


def test_worker_that_is_replaced_says_at_its_end_what_it_counted(service: Service) -> None:
    before, old = value(REFUSED, service.text()), set(service.running.serving)
    service.send_malformed(ASKED)
    service.running.send(signal.SIGHUP)
    wait_until(lambda: len(service.running.serving) == WORKERS and not old & set(service.running.workers))
    assert value(REFUSED, service.text()) == before + ASKED
