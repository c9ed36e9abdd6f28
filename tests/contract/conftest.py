"""One server for a whole file: most facts of the contract need none of their own."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import redis
import time_machine
from django.conf import settings
from pytest_django import DjangoDbBlocker

from accounts.limits import throttle
from accounts.limits.redis_window import RedisWindow
from accounts.open_streams.redis_slots import RedisSlots
from analysis.analyses import AnswerCache
from core.events.event_feed import OutboxTrust
from core.logs import SAMPLED
from tests.client import Api, Server
from tests.contract.ways import servers
from tests.databases.emptying import empty_database
from tests.factories import NOON, make_account, make_key, make_tier
from tests.patience import PATIENCE_S


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is excepted on daphne has to fail there, or it is no exception."""
    for item in items if servers.CHOSEN == "daphne" else ():
        name = f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
        if reason := servers.EXCEPTED.get(name):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
        elif reason := servers.LEFT_OUT.get(name):
            item.add_marker(pytest.mark.skip(reason))
    # Last, because the database that a file leaves is empty of what the migrations put there, too.
    items.sort(key=lambda item: "shared_server" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """A machine busy with other things is no Redis and no database that is away."""
    with pytest.MonkeyPatch.context() as patch:
        for asking in (AnswerCache, RedisSlots, RedisWindow):
            patch.setattr(asking, "PATIENCE_S", PATIENCE_S)
        for name in ("core.threads.PROMPTLY_S", "core.events.event_feed.SURE_WITHIN_S"):
            patch.setattr(name, PATIENCE_S)
        patch.setattr("archive.index.PROMPTLY_S", PATIENCE_S)
        patch.setattr(OutboxTrust, "STALE_AFTER_S", PATIENCE_S)
        patch.setattr("pages.handler.PATIENCE_S", PATIENCE_S)
        yield


@pytest.fixture(autouse=True)
def _one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """All requests of a test are of one moment, however long a busy machine takes for them."""
    now_ns = time.monotonic_ns()
    monkeypatch.setattr(throttle.window, "clock_ns", lambda: now_ns)


@pytest.fixture(scope="module")
def db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A file's database; its name makes pytest-django create the one of the run."""
    with django_db_blocker.unblock():
        yield
        empty_database()


@pytest.fixture(scope="module")
def shared_server(db: None) -> Iterator[Server]:
    """What a test leaves behind here, the others of its file meet."""
    forget_redis()
    with servers.make_server() as running:
        yield running


@pytest.fixture
def server(transactional_db: None) -> Iterator[Server]:
    forget_redis()
    with servers.make_server() as running:
        yield running


def forget_redis() -> None:
    if settings.REDIS_URL:
        with redis.Redis.from_url(settings.REDIS_URL) as client:
            client.flushdb()


@pytest.fixture(scope="module")
def shared(shared_server: Server) -> Iterator[Api]:
    """A client of that server, with a valid key of a tier that is never used up."""
    limits = {"requests_per_minute": 100_000, "ai_calls_per_day": 100_000}
    account = make_account(tier=make_tier("roomy", archive=True, **limits))
    with Api(shared_server, make_key(account)) as client:
        yield client


@pytest.fixture
def one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """For logs that write more lines as time goes on."""
    for log in SAMPLED:
        monkeypatch.setattr(log, "_clock", lambda: 0.0)
    monkeypatch.setattr("core.logs.TELL_REST_EVERY_S", 3600.0)


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """The wall clock stands at noon until a test moves it. Named first, it is noon for the server too."""
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller
