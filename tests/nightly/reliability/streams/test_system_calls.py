"""The kernel refuses: no descriptor for a newcomer, a send that fails. It costs nobody else anything."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from tests.nightly.reliability.clients.meters import listening
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.conftest import Tell
from tests.reliability.services.flow import Flow
from tests.reliability.services.processes import Installation
from tests.reliability.services.strace import injecting
from tests.reliability.services.stream_services import StreamService, streaming

PATH, SYMBOLS, LISTENERS, TICKS_A_SECOND = "/ws/market", ["CALL0", "CALL1"], 20, 100
pytestmark = pytest.mark.usefixtures("rows")


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    with django_db_blocker.unblock(), streaming(embedded_for_module, 1, SYMBOLS) as running:
        yield running


@pytest.fixture
def message(service: StreamService) -> dict[str, Any]:
    key = service.make_key()
    return {"action": "subscribe", "symbols": SYMBOLS, "api_key": key, "features": ["seq"]}


def traced(service: StreamService) -> tuple[Path, list[int]]:
    return service.installation.directory / "strace.log", [service.servers[0].pid]


@pytest.mark.row(
    "system calls",
    "out of file descriptors: nothing lost to others, new clients admitted immediately afterwards",
)
def test_newcomers_refused_for_lack_of_descriptors_cost_others_no_frame(
    service: StreamService, message: dict[str, Any], tell: Tell
) -> None:
    port = service.servers[0].port
    with listening(port, PATH, message, LISTENERS) as meter, Flow(service, TICKS_A_SECOND):
        wait_until(lambda: meter.take().frames > 0)
        with injecting(*traced(service), "accept4,accept", "error=EMFILE") as tracer:
            waiting = [socket.create_connection(("127.0.0.1", port), PATIENCE_S) for _ in range(20)]
            wait_until(lambda: tracer.injected > 0)
            time.sleep(1)
            refused, meanwhile = tracer.injected, meter.take()
        for one in waiting:
            one.close()
        wait_until(lambda: service.servers[0].ask("/healthz").status_code == 200)
        after = meter.take()
    tell(f"accept refused {refused} times: frames lost to {LISTENERS} {meanwhile.missed + after.missed}")
    assert refused > 0
    assert meanwhile.frames > 0
    assert (meanwhile.missed, after.missed, after.ended) == (0, 0, 0)


@pytest.mark.row("system calls", "connections reset: nothing lost without notice, the process survives")
def test_a_failing_send_ends_at_most_one_connection(
    service: StreamService, message: dict[str, Any], tell: Tell
) -> None:
    port = service.servers[0].port
    with listening(port, PATH, message, LISTENERS) as meter, Flow(service, TICKS_A_SECOND):
        wait_until(lambda: meter.take().frames > 0)
        with injecting(*traced(service), "sendto", "error=ECONNRESET:when=50+97") as tracer:
            wait_until(lambda: tracer.injected >= 20)
        heard = meter.take()
        wait_until(lambda: meter.take().frames > 0)
    tell(f"{tracer.injected} sends failed: frames missed {heard.missed}, connections ended {heard.ended}")
    assert heard.missed == 0
    assert heard.ended <= tracer.injected
    assert service.servers[0].ask("/healthz").status_code == 200
