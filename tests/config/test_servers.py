"""uvicorn under `serve` and daphne under `runserver`: both serve it all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.commands import manage
from tests.running import Serve

PATHS = {
    "/healthz": (200, "application/json"),
    "/readyz": (200, "application/json"),
    "/metrics": (200, "text/plain"),
    "/openapi.json": (200, "application/json"),
    "/docs/api": (200, "text/html"),
    "/api/symbols": (200, "application/json"),
    "/api/symbols/": (200, "application/json"),
    "/api/market/EURUSD/quote": (503, "application/json"),
    "/api/session": (200, "application/json"),
    "/api/limits": (200, "application/json"),
    "/api/nothing": (404, "application/json"),
    "/nothing": (404, "application/json"),
    "/accounts/login/": (200, "text/html"),
    "/settings/keys": (302, "text/html"),
    "/admin/": (302, "text/html"),
    "/static/tickwire.css": (200, "text/css"),
    "/static/unfold/css/styles.css": (200, "text/css"),
}


class Running:
    def __init__(self, server: Serve, key: str) -> None:
        self.server, self.key = server, key


@pytest.fixture(scope="module", params=["serve", "runserver"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    var_dir: Path = tmp_path_factory.mktemp(request.param) / "var"
    manage(var_dir, "migrate", DEMO="0")
    manage(var_dir, "load_instruments", DEMO="0")
    key = manage(var_dir, "issue_key", "alice", "--tier", "premium", DEMO="0").stdout.strip()
    with Serve(var_dir, command=request.param, DEMO="0") as server:
        yield Running(server, key)


@pytest.mark.parametrize("path", PATHS)
def test_path_is_served(running: Running, path: str) -> None:
    response = httpx.get(f"{running.server.url}{path}", headers={"X-API-Key": running.key})

    status, content_type = PATHS[path]
    assert response.status_code == status
    assert response.headers["Content-Type"].startswith(content_type)


def test_head_has_the_headers_of_get_and_no_body(running: Running) -> None:
    response = httpx.head(f"{running.server.url}/api/symbols", headers={"X-API-Key": running.key})

    assert response.status_code == 200
    assert int(response.headers["Content-Length"]) > 100
    assert response.content == b""


def test_it_ends_without_a_traceback(running: Running) -> None:
    running.server.stop()

    assert "Traceback" not in running.server.output
