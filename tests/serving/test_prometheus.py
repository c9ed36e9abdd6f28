"""The metrics open to a token, or on a port of their own: never to an address."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.test import Client
from prometheus_client import REGISTRY
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from pytest_django.fixtures import Settings

from serving.metrics.port import MetricsPort
from serving.prometheus import metrics_port
from tests.client import Server
from tests.patience import PATIENCE_S
from tests.programs.services import free_port

# What a service sees of everybody behind a proxy on its own machine.
HERE: dict[str, Any] = {"SERVER_NAME": "127.0.0.1", "HTTP_HOST": "127.0.0.1"}
# An address for documentation, which no machine has.
NOBODYS = "192.0.2.1"
FIGURE = "tickwire_limit_fallbacks_total"

# More than one thread and the places in front of it.
STRANGERS = 200


def ask(authorization: str | None = None) -> Any:
    headers = {"Authorization": authorization} if authorization else None
    return Client(**HERE).get("/metrics", headers=headers)


@pytest.mark.parametrize("authorization", [None, "Bearer x", "Bearer ", "Basic s3cret", "s3cret", "Bearer é"])
def test_without_the_token_nothing_is_told(settings: Settings, authorization: str | None) -> None:
    settings.METRICS_TOKEN = "s3cret"
    assert FIGURE in ask("Bearer s3cret").text
    answer = ask(authorization)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert FIGURE not in answer.text
    # Where none is set, the path is shut and says what to do.
    settings.METRICS_TOKEN = ""
    answer = ask(authorization)
    assert (answer.status_code, "METRICS_PORT" in answer.text) == (403, True)


class LongScrape(Collector):
    """A figure that is not to be had before the event is set."""

    def __init__(self) -> None:
        self.began, self.go = threading.Event(), threading.Event()

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        self.began.set()
        self.go.wait(PATIENCE_S)
        yield from ()


@pytest.fixture
def scrape() -> Iterator[LongScrape]:
    long = LongScrape()
    REGISTRY.register(long)
    yield long
    long.go.set()
    REGISTRY.unregister(long)


async def test_strangers_in_any_number_wait_for_no_scrape(server: Server, scrape: LongScrape) -> None:
    limits = httpx.Limits(max_connections=STRANGERS)
    token = {"Authorization": f"Bearer {settings.METRICS_TOKEN}"}
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S, limits=limits) as client:
        operator = asyncio.create_task(client.get("/metrics", headers=token))
        assert await asyncio.to_thread(scrape.began.wait, PATIENCE_S)
        asked = (client.get("/metrics", headers={"Authorization": "Bearer x"}) for _ in range(STRANGERS - 1))
        refused = {answer.status_code for answer in await asyncio.gather(*asked)}
        was_waiting = not operator.done()
        scrape.go.set()
        answer = await operator
    assert (refused, was_waiting) == ({401}, True)
    assert FIGURE in answer.text


async def fetch(port: int, head: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head)
    answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    return answer


async def text() -> bytes:
    return f"{FIGURE} 1.0\n".encode()


async def ready() -> tuple[int, dict[str, str]]:
    return 503, {"status": "not ready"}


@pytest.fixture
async def port() -> AsyncIterator[MetricsPort]:
    port = MetricsPort(text, ready)
    await port.start(free_port(), "127.0.0.1")
    yield port
    await port.stop()


@pytest.mark.parametrize(
    ("head", "status", "body"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"200 OK", FIGURE.encode()),
        (b"GET /livez HTTP/1.0\r\n\r\n", b"200 OK", b'{"status":"ok"}'),
        (b"GET /readyz HTTP/1.1\r\nHost: 10.0.0.1:9100\r\n\r\n", b"503 Service Unavailable", b"not ready"),
        (b"GET /admin/ HTTP/1.1\r\n\r\n", b"404 Not Found", b"Ask for"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405 Method Not Allowed", b""),
        (b"x" * 20_000, b"", b""),
    ],
)
async def test_own_port_serves_metrics_and_probes_and_nothing_else(
    port: MetricsPort, head: bytes, status: bytes, body: bytes
) -> None:
    assert port.port is not None
    answer = await fetch(port.port, head)
    assert answer.startswith(b"HTTP/1.1 " + status + b"\r\n") if status else answer == b""
    assert body in answer


async def test_port_of_a_single_process_tells_whether_that_is_ready() -> None:
    await metrics_port.start(free_port(), "127.0.0.1")
    assert metrics_port.port is not None
    answer = await fetch(metrics_port.port, b"GET /readyz HTTP/1.1\r\n\r\n")
    await metrics_port.stop()
    assert b'"checks":{' in answer


async def test_each_service_takes_the_next_port_and_production_none(
    port: MetricsPort, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    assert port.port is not None
    for settings.PRODUCTION in (False, True):
        second = MetricsPort(text, ready)
        await second.start(port.port, "127.0.0.1")
        assert (second.port is None) is settings.PRODUCTION
        assert second.port is None or second.port > port.port
        await second.stop()
    warning, error = caplog.records
    assert (warning.levelname, error.levelname) == ("WARNING", "ERROR")
    assert warning.getMessage().startswith(f"Port {port.port} is taken, so metrics and probes are at ")
    assert error.getMessage().startswith(f"Port {port.port} is taken, so metrics and probes are not served")


@pytest.mark.parametrize("is_production", [False, True])
async def test_a_port_that_cannot_be_opened_is_an_error_and_ends_nothing(
    settings: Settings, caplog: pytest.LogCaptureFixture, *, is_production: bool
) -> None:
    settings.PRODUCTION = is_production
    port = MetricsPort(text, ready)
    # None is taken unless it is asked for.
    await port.start(0, "127.0.0.1")
    assert (port.port, caplog.records) == (None, [])
    await port.start(free_port(), NOBODYS)
    assert port.port is None
    (error,) = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert f"of {NOBODYS} cannot be opened" in error
    assert "METRICS_HOST has to be an address of this machine" in error
