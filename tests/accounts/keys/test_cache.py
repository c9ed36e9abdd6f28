from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import OperationalError
from django.utils import timezone

from accounts.key_text import generate_key, prefix_of
from accounts.keys.cache import ApiKeyCache
from accounts.keys.issuing import revoke_key
from accounts.limits.tiers import change_tier, save_tier
from accounts.models import ApiKey, Tier, User
from core.events.event_feed import EventFeed
from core.events.outbox import ControlEvent
from core.threads import in_thread
from tests.core.events.following import follow
from tests.databases.queries import around_statements, count_queries
from tests.factories import make_account, make_key
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services]


@pytest.fixture
async def feed() -> AsyncIterator[EventFeed]:
    running = EventFeed()
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
def cache(feed: EventFeed) -> ApiKeyCache:
    cache = ApiKeyCache(feed)
    follow(feed, cache, cache.pages)
    return cache


@pytest.fixture
def key() -> str:
    return make_key()


def row(key: str) -> ApiKey:
    return ApiKey.objects.select_related("account__tier").get(prefix=prefix_of(key))


async def act(change: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return await in_thread(lambda: change(*args, **options))


async def test_known_key_is_found_without_asking_again(cache: ApiKeyCache, key: str) -> None:
    first = await cache.find(key)
    with count_queries() as asked:
        assert await cache.find(key) == first
    assert first is not None
    assert (first.allowances.tier, first.allowances.requests) == ("free", 60)
    assert asked == []


async def test_malformed_key_never_reaches_the_database(cache: ApiKeyCache, key: str) -> None:
    with count_queries() as asked:
        for malformed in ("", "x", key[:-1], key + "0", key.swapcase(), "\udc80" * 50, "é" * 50):
            assert await cache.find(malformed) is None
    assert asked == []


@pytest.mark.parametrize("ended", ["revoked", "expired", "user locked out"])
async def test_unknown_and_ended_keys_are_asked_for_alike_and_never_remembered(
    cache: ApiKeyCache, key: str, ended: str
) -> None:
    match ended:
        case "revoked":
            await act(lambda: ApiKey.objects.update(revoked_at=timezone.now()))
        case "expired":
            await act(lambda: ApiKey.objects.update(expires_at=timezone.now()))
        case _:
            await act(lambda: User.objects.update(is_active=False))
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
    revoked = await act(row, key)
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
        await act(revoke_key, revoked, by="test")
        await feed.read()
        go.set()
        caller = await lookup
    # This one request was under way before the revocation; the key opened nothing after it.
    assert caller is not None
    assert await cache.find(key) is None


async def test_revoked_key_is_refused_as_soon_as_the_event_is_read(
    feed: EventFeed, cache: ApiKeyCache, key: str
) -> None:
    assert await cache.find(key)
    await act(revoke_key, await act(row, key), by="test")
    await feed.read()
    assert await cache.find(key) is None


async def test_revoking_one_account_leaves_the_others_known(
    feed: EventFeed, cache: ApiKeyCache, key: str
) -> None:
    other = await act(make_key)
    assert await cache.find(key)
    assert await cache.find(other)
    await act(revoke_key, await act(row, key), by="test")
    await feed.read()
    with count_queries() as asked:
        assert await cache.find(other)
    assert asked == []


async def test_change_of_tier_is_known_as_soon_as_the_event_is_read(
    feed: EventFeed, cache: ApiKeyCache, key: str
) -> None:
    await cache.find(key)
    account = (await act(row, key)).account
    await act(change_tier, account, await act(Tier.objects.get, name="pro"), by="test")
    await feed.read()
    caller = await cache.find(key)
    assert caller is not None
    assert (caller.allowances.tier, caller.allowances.requests) == ("pro", 120)


async def test_edited_tier_holds_for_every_account_on_it(
    feed: EventFeed, cache: ApiKeyCache, key: str
) -> None:
    await cache.find(key)
    tier = (await act(row, key)).account.tier
    tier.requests_per_minute = 7
    await act(save_tier, tier, by="test")
    await feed.read()
    caller = await cache.find(key)
    assert caller is not None
    assert caller.allowances.requests == 7


async def test_while_events_cannot_be_read_each_key_is_asked_for(
    feed: EventFeed, cache: ApiKeyCache, key: str
) -> None:
    await cache.find(key)
    await feed.stop()
    await act(lambda: ApiKey.objects.update(revoked_at=timezone.now()))
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


async def test_last_use_is_recorded(cache: ApiKeyCache, key: str) -> None:
    before = timezone.now()
    await cache.find(key)
    await cache.used.record()
    last_used_at = (await act(row, key)).last_used_at
    assert last_used_at is not None
    assert before <= last_used_at <= timezone.now()


async def test_last_use_survives_a_database_that_is_away(cache: ApiKeyCache, key: str) -> None:
    def refuse_updates(sql: str, run: Callable[[], Any]) -> Any:
        if sql.startswith("UPDATE"):
            raise OperationalError("the database is away")
        return run()

    await cache.find(key)
    with around_statements(refuse_updates), pytest.raises(OperationalError):
        await cache.used.record()
    await cache.used.record()
    assert (await act(row, key)).last_used_at is not None


async def test_nothing_shows_more_of_a_key_than_its_prefix(
    cache: ApiKeyCache, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = await act(lambda: make_key(make_account()))
    caller = await cache.find(key)
    stored = await act(row, key)
    await act(revoke_key, stored, by="test")
    events = await act(lambda: list(ControlEvent.objects.values()))
    shown = (
        "\n".join(map(repr, (caller, stored, str(stored), vars(stored), cache.used, events))) + caplog.text
    )
    assert prefix_of(key) in shown
    assert key[len(prefix_of(key)) :] not in shown
    assert key not in shown
