"""Every test runs against real things: a database file or server, and a server process' own socket."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Before anything reads the settings: an installation of its own for this run (and each xdist worker).
worker = os.environ.get("PYTEST_XDIST_WORKER", "")
_var = tempfile.TemporaryDirectory(prefix="tickwire-test-")
os.environ |= {"VAR_DIR": _var.name, "DEMO": "0", "ACCESS_LOG": "0", "LOG_LEVEL": "WARNING"}
if os.environ.get("REDIS_URL"):
    database = int(worker.removeprefix("gw") or 0)
    os.environ["REDIS_URL"] = f"{os.environ['REDIS_URL'].rsplit('/', 1)[0]}/{database}"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django  # noqa: E402

django.setup()
# A worker that inherits it would read the settings before this file gives it places of its own.
del os.environ["DJANGO_SETTINGS_MODULE"]

import pytest  # noqa: E402
from django.conf import settings  # noqa: E402

from tests.client import Api, Server  # noqa: E402


@pytest.fixture(scope="session")
def var_dir() -> Path:
    return Path(_var.name)


@pytest.fixture(autouse=True)
def _fast_passwords(settings: object) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # type: ignore[attr-defined]


@pytest.fixture
def transactional_db(transactional_db: None) -> None:
    """The tiers are part of the schema; the flush after the test before took them too."""
    from accounts.models import Tier
    from tests.factories import TIERS

    for name, (rank, requests, streams, ai_calls) in TIERS.items():
        Tier.objects.get_or_create(
            name=name,
            defaults={
                "rank": rank,
                "requests_per_minute": requests,
                "streams": streams,
                "ai_calls_per_day": ai_calls,
            },
        )


@pytest.fixture
def server(transactional_db: None) -> Iterator[Server]:
    """A real server on a real socket, with the empty market of a fresh installation."""
    if settings.REDIS_URL:
        import redis

        with redis.Redis.from_url(settings.REDIS_URL) as client:
            client.flushdb()
    with Server() as running:
        yield running


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    """A client with a valid key of a tier that no test uses up by accident."""
    from tests.factories import make_account, make_key, make_tier

    account = make_account(tier=make_tier("roomy", requests_per_minute=100_000))
    with Api(server, make_key(account)) as client:
        yield client
