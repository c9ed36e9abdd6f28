"""A refusal names its source in the log, in a field that nothing takes for a secret."""

from __future__ import annotations

import json
import logging

import httpx
import pytest
from websockets.sync.client import connect

from config.logging import line_formatter
from market.push.session import MAX_INVALID_A_MINUTE
from tests.client import Server
from tests.patience import PATIENCE_S, wait_until

from .conftest import make_ingest_key


def logged_source(caplog: pytest.LogCaptureFixture) -> str | None:
    """Of the one refusal, as the line shows it."""
    wait_until(lambda: [record for record in caplog.records if record.name == "accounts.access"])
    (record,) = (record for record in caplog.records if record.name == "accounts.access")
    source: str | None = json.loads(line_formatter(json=True).format(record)).get("source")
    return source


@pytest.fixture
def refusals(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "accounts.access")
    return caplog


def test_refused_request_names_it(client: httpx.Client, refusals: pytest.LogCaptureFixture) -> None:
    headers = {"X-Ingest-Key": make_ingest_key("bridge")}
    assert client.post("/ingest/ticks", content=b"nonsense", headers=headers).status_code == 400
    assert logged_source(refusals) == "bridge"


def test_refused_socket_names_it(service: Server, refusals: pytest.LogCaptureFixture) -> None:
    url, headers = f"ws://127.0.0.1:{service.port}/ws/ingest", {"X-Ingest-Key": make_ingest_key("bridge")}
    with connect(url, additional_headers=headers, open_timeout=PATIENCE_S) as socket:
        for _ in range(MAX_INVALID_A_MINUTE + 1):
            socket.send("nonsense")
    assert logged_source(refusals) == "bridge"
    assert logged_source(refusals) == "bridge"
