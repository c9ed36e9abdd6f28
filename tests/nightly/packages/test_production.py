"""The installed wheel in production: it makes its tables, collects its static files and serves pages, and its
own folder may be read-only."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE_S
from tests.programs import services
from tests.programs.running import Serve

from .conftest import files_of, nowhere, typed

HOST = "api.example.com"
STYLE = re.compile(r'href="(/static/tickwire\.[0-9a-f]{12}\.css)"')


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("production")


@pytest.fixture(scope="module")
def production(home: Path) -> Iterator[dict[str, str]]:
    for name in ("postgres", "redis"):
        (home / name).mkdir()
    with services.postgres(home / "postgres") as database, services.redis(home / "redis") as redis:
        yield {
            "PRODUCTION": "1",
            "ALLOWED_HOSTS": HOST,
            "SECRET_KEY": secrets.token_urlsafe(48),
            "KEY_PEPPER": secrets.token_urlsafe(48),
            "DATABASE_URL": database,
            "REDIS_URL": redis,
            "EMAIL_URL": "dummymail://",
            "TRUSTED_PROXIES": "127.0.0.1",
            "DRAIN_S": "0",
        }


@pytest.fixture(scope="module")
def serving(
    program: Path, home: Path, installed_files: dict[Path, int], production: dict[str, str]
) -> Iterator[Serve]:
    migrated = typed(program, home, "migrate", "--data", "D", "--verbosity", "0", **production)
    assert migrated.returncode == 0, migrated.stderr
    words = [str(program), "serve", "--data", "D"]
    serve = Serve(home / "unused", **nowhere(home), **production)
    with serve.as_typed(words, home) as running:
        yield running


def test_it_does_not_start_before_its_tables_are_there(
    program: Path, home: Path, production: dict[str, str]
) -> None:
    refused = typed(program, home, "serve", "--data", "D", "--port", str(services.free_port()), **production)
    assert refused.returncode == 1
    assert "Run `tickwire-server --data D migrate` first." in refused.stderr


def test_pages_name_files_that_it_has_collected_and_nothing_is_written_beside_its_code(
    program: Path, serving: Serve, home: Path, installed_files: dict[Path, int]
) -> None:
    headers = {"Host": HOST, "X-Forwarded-Proto": "https"}
    with httpx.Client(base_url=serving.url, headers=headers, timeout=PATIENCE_S) as client:
        found = STYLE.search(client.get("/").raise_for_status().text)
        assert found is not None
        style = client.get(found[1]).raise_for_status()
    assert "immutable" in style.headers["Cache-Control"]
    assert "Collected the static files of this version." in serving.output
    assert list((home / "D" / "static").glob("staticfiles-*.json"))
    assert files_of(program) == installed_files
