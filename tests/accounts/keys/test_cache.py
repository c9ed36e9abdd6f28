from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import OperationalError
from django.utils import timezone

from accounts.key_text import generate_key
from accounts.keys.cache import ApiKeyCache
from accounts.limits.tiers import change_tier, save_tier
from accounts.models import ApiKey, Tier, User
from core.events.event_feed import EventFeed
from tests.core.events.following import follow
from tests.databases.queries import around_statements, count_queries
from tests.factories import make_key
from tests.patience import PATIENCE_S

from .known_keys import act, revoke, row

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services]


@pytest.fixture
def cache(feed: EventFeed) -> ApiKeyCache:
    cache = ApiKeyCache(feed)
    follow(feed, cache, cache.pages)
    return cache


@pytest.fixture
def key() -> str:
    return make_key()


async def test_known_or_malformed_key_asks_the_database_nothing(cache: ApiKeyCache, key: str) -> None:
    first = await cache.find(key)
    with count_queries() as asked:
        assert await cache.find(key) == first
        for malformed in ("", "x", key[:-1], key + "0", key.swapcase(), "\udc80" * 50, "é" * 50):
            assert await cache.find(malformed) is None
    assert first is not None
    assert (first.allowances.tier, first.allowances.requests) == ("free", 60)
    assert asked == []


ENDS: dict[str, Callable[[], object]] = {
    "revoked": lambda: ApiKey.objects.update(revoked_at=timezone.now()),
    "expired": lambda: ApiKey.objects.update(expires_at=timezone.now()),
    "user locked out": lambda: User.objects.update(is_active=False),
}


@pytest.mark.parametrize("ended", ENDS)
async def test_unknown_and_ended_keys_are_asked_for_alike_and_never_remembered(
    cache: ApiKeyCache, key: str, ended: str
) -> None:
    await act(ENDS[ended])
    statements = []
    for refused in (generate_key(), key, generate_key(), key):
        with count_queries() as asked:
            assert await cache.find(refused) is None
        statements.append(asked)
    assert [len(asked) for asked in statements] == [1, 1, 1, 1]
    assert len({sql for asked in statements for sql in asked}) == 1


async def test_key_that_is_revoked_while_it_is_looked_up_is_not_remembered(
    feed: EventFeed, cache: ApiKeyCache, key: str
) -> None:
    answered, go = threading.Event(), threading.Event()

    def hold_lookups(sql: str, run: Callable[[], Any]) -> Any:
        """After the database answered and before anybody learns of it."""
        result = run()
        if sql.startswith("SELECT") and '"digest" IN ' in sql:
            answered.set()
            go.wait(PATIENCE_S)
        return result

    with around_statements(hold_lookups):
        lookup = asyncio.create_task(cache.find(key))
        assert await asyncio.to_thread(answered.wait, PATIENCE_S)
        await revoke(key)
        await feed.read()
        go.set()
        caller = await lookup
    # This one request was under way before the revocation; the key opened nothing after it.
    assert caller is not None
    assert await cache.find(key) is None


async def test_change_is_known_as_soon_as_its_event_is_read_and_others_stay_known(
    feed: EventFeed, cache: ApiKeyCache, key: str
) -> None:
    async def allowed() -> tuple[str, int] | None:
        await feed.read()
        caller = await cache.find(key)
        return (caller.allowances.tier, caller.allowances.requests) if caller else None

    other = await act(make_key)
    assert await allowed() == ("free", 60)
    account = (await act(row, key)).account
    await act(change_tier, account, await act(Tier.objects.get, name="pro"), by="test")
    assert await allowed() == ("pro", 120)
    tier = (await act(row, key)).account.tier
    tier.requests_per_minute = 7
    await act(save_tier, tier, by="test")
    assert await allowed() == ("pro", 7)
    await cache.find(other)
    await revoke(key)
    with count_queries() as asked:
        assert await allowed() is None
        assert await cache.find(other)
    assert len([sql for sql in asked if "apikey" in sql]) == 1


async def test_while_events_cannot_be_read_each_key_is_asked_for(
    feed: EventFeed, cache: ApiKeyCache, key: str
) -> None:
    await cache.find(key)
    await feed.stop()
    await act(ENDS["revoked"])
    assert await cache.find(key) is None


async def test_remembered_key_ends_at_its_expiry(cache: ApiKeyCache, key: str) -> None:
    expires_at = timezone.now() + timedelta(hours=1)
    await act(lambda: ApiKey.objects.update(expires_at=expires_at))
    assert await cache.find(key)
    with count_queries() as asked:
        with time_machine.travel(expires_at - timedelta(seconds=5)):
            assert await cache.find(key)
        with time_machine.travel(expires_at):
            assert await cache.find(key) is None
    assert asked == []


async def test_last_use_is_recorded_though_the_database_was_away(cache: ApiKeyCache, key: str) -> None:
    def refuse_updates(sql: str, run: Callable[[], Any]) -> Any:
        if sql.startswith("UPDATE"):
            raise OperationalError("the database is away")
        return run()

    before = timezone.now()
    await cache.find(key)
    with around_statements(refuse_updates), pytest.raises(OperationalError):
        await cache.used.record()
    await cache.used.record()
    last_used_at = (await act(row, key)).last_used_at
    assert last_used_at is not None
    assert before <= last_used_at <= timezone.now()
