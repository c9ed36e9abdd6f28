from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from django.conf import settings

from accounts.key_text import prefix_of
from accounts.limits.tiers import save_user_access
from accounts.models import Account, User
from config.logging import line_formatter
from core import clock
from core.background import cancel_and_wait
from core.events.event_feed import feed
from market import runtime as market
from market.engine.push_queue import PushQueue
from market.models import IngestKey
from market.push.keys import LEAD, issue_ingest_key
from tests.client import Server
from tests.contract.conftest import (
    db,  # noqa: F401
    pytest_collection_modifyitems,  # noqa: F401
    shared_server,  # noqa: F401
)
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.patience import PATIENCE_S, wait_until

_numbers = itertools.count(1)


@contextmanager
def engine_beside(server: Server) -> Iterator[None]:
    """With Redis the engine is another process; here a task behind the same inbox stands for it."""
    if not settings.REDIS_URL:
        yield
        return

    def take(origin: str, ticks: list[Any], sent_ms: int, key: str) -> list[str | None]:
        return market.engine.take(origin, ticks, clock.now_ms(), key)

    async def serve() -> tuple[PushQueue, asyncio.Task[None]]:
        inbox = PushQueue(settings.REDIS_URL)
        return inbox, asyncio.create_task(inbox.serve(take))

    async def leave(inbox: PushQueue, serving: asyncio.Task[None]) -> None:
        await cancel_and_wait(serving)
        await inbox.stop()

    running = server.run(serve())
    yield
    server.run(leave(*running))


@pytest.fixture(scope="module")
def service(shared_server: Server) -> Iterator[Server]:  # noqa: F811
    with engine_beside(shared_server):
        yield shared_server


@pytest.fixture(scope="module")
def client(service: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=PATIENCE_S) as made:
        yield made


@pytest.fixture(scope="module")
def key(service: Server) -> str:
    """An ingest key that may send everything."""
    return make_ingest_key()


@pytest.fixture
def symbol(service: Server) -> str:
    """An instrument that nobody has sent a tick of."""
    return make_instrument(f"PUSHED{next(_numbers)}").symbol


def make_ingest_key(name: str = "desk", symbols: str = "", account: Account | None = None) -> str:
    return issue_ingest_key(name, symbols, by="test", account=account)[1]


def lock(account: Account, *, is_active: bool = False) -> None:
    User.objects.filter(pk=account.user_id).update(is_active=is_active)
    save_user_access(account, by="test")


def row_of(key: str) -> IngestKey:
    return IngestKey.objects.get(prefix=prefix_of(key, LEAD))


def read_events(service: Server) -> None:
    service.run(feed.read())


def logged_source(caplog: pytest.LogCaptureFixture) -> str | None:
    """Of the one refusal, as the line shows it: in a field that nothing takes for a secret."""
    wait_until(lambda: [record for record in caplog.records if record.name == "accounts.access"])
    (record,) = (record for record in caplog.records if record.name == "accounts.access")
    source: str | None = json.loads(line_formatter(json=True).format(record)).get("source")
    return source


def make_api_key() -> str:
    """Of a tier of its own: those of the specification go with the database of the file before."""
    return make_key(make_account(tier=make_tier("roomy")))


def make_tick(symbol: str, **fields: Any) -> dict[str, Any]:
    """A good one of now, as JSON."""
    return {"symbol": symbol, "bid": 1.0841, "ask": 1.0843, **fields}
