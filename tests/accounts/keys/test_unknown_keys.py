"""Unknown keys are refused without a question each; new ones work from the moment they are shown."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import pytest
from django.db import OperationalError
from django.utils import timezone

from accounts.key_text import generate_key, prefix_of
from accounts.keys.cache import ApiKeyCache, Marks
from accounts.keys.caller import Caller
from accounts.limits.tiers import save_user_access
from accounts.models import ApiKey, User
from core.contract.errors import Overloaded
from core.events.event_feed import EventFeed
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from tests.core.events.following import follow
from tests.databases.queries import count_queries
from tests.factories import make_key
from tests.patience import PATIENCE_S

from .known_keys import act, revoke, row

STRANGERS = 50
pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services]


@pytest.fixture
async def known() -> str:
    key: str = await act(make_key)
    return key


@pytest.fixture
async def cache(feed: EventFeed, known: str) -> AsyncIterator[ApiKeyCache]:
    """It knows which keys there are."""
    cache = ApiKeyCache(feed)
    follow(feed, cache)
    await cache.start()
    assert cache.loading is not None
    await cache.loading
    yield cache
    await cache.stop()


async def test_strangers_share_a_read_and_nobody_asks_for_their_keys(cache: ApiKeyCache) -> None:
    strangers = [generate_key() for _ in range(STRANGERS)]
    with count_queries() as asked:
        found = await asyncio.gather(*map(cache.find, strangers))
    assert found == [None] * STRANGERS
    assert not [sql for sql in asked if "apikey" in sql]
    # One under way when they came, at most, and the one that they share, whoever began it.
    assert 1 <= len(asked) <= 2


async def test_key_works_from_the_moment_it_is_shown(cache: ApiKeyCache) -> None:
    async def issue_and_use() -> bool:
        key = await act(make_key)
        return await cache.find(key) is not None

    assert await asyncio.gather(*(issue_and_use() for _ in range(5))) == [True] * 5


@pytest.mark.parametrize("was_locked_out", [False, True])
async def test_revoked_key_is_refused_like_one_that_never_was(
    feed: EventFeed, cache: ApiKeyCache, known: str, was_locked_out: bool
) -> None:
    account = (await act(row, known)).account
    await act(User.objects.filter(pk=account.user_id).update, is_active=not was_locked_out)
    assert (await cache.find(known) is None) is was_locked_out
    await revoke(known)
    # Others are let in again.
    await act(save_user_access, account, by="test")
    with count_queries() as revoked:
        # Its first request reads the event.
        await feed.read()
        assert await cache.find(known) is None
    with count_queries() as unknown:
        assert await cache.find(generate_key()) is None
    assert {sql for sql in revoked if "apikey" in sql} == {sql for sql in unknown if "apikey" in sql} == set()


def test_marks_keep_no_trace_of_what_is_taken_out() -> None:
    marks, digest = Marks(), bytes(range(32))
    marks.add(digest)
    marks.discard(digest)
    assert vars(marks) == vars(Marks())


async def test_key_of_a_user_who_is_let_in_again_works(
    feed: EventFeed, cache: ApiKeyCache, known: str
) -> None:
    account = (await act(row, known)).account
    for is_active in (False, True):
        await act(User.objects.filter(pk=account.user_id).update, is_active=is_active)
        await act(save_user_access, account, by="test")
        await feed.read()
        assert (await cache.find(known) is not None) is is_active


async def test_user_let_in_again_while_their_key_was_looked_for_is_not_refused_for_good(
    feed: EventFeed, cache: ApiKeyCache, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = (await act(row, known)).account
    await act(User.objects.filter(pk=account.user_id).update, is_active=False)
    loop, looked, go = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    look_up = cache.look_up

    def look_and_wait(digests: Sequence[str]) -> Caller | None:
        found = look_up(digests)
        loop.call_soon_threadsafe(looked.set)
        go.wait(PATIENCE_S)
        return found

    monkeypatch.setattr(cache, "look_up", look_and_wait)
    finding = asyncio.create_task(cache.find(known))
    await looked.wait()
    await act(User.objects.filter(pk=account.user_id).update, is_active=True)
    await act(save_user_access, account, by="test")
    await feed.read()
    go.set()
    await finding

    assert await cache.find(known) is not None


async def test_key_that_an_older_version_issued_is_found(cache: ApiKeyCache) -> None:
    key = await act(make_key)
    issued = await act(ControlEvent.objects.get, kind=EventKind.KEY_ISSUED, facts__prefix=prefix_of(key))
    del issued.facts["mark"]
    await act(issued.save)
    assert await cache.find(key) is not None


async def test_nothing_is_known_any_more_of_a_database_that_began_anew(
    feed: EventFeed, cache: ApiKeyCache, known: str
) -> None:
    """A key that was issued there is found, and one that was revoked there is not."""
    await feed.read()
    assert await cache.find(known) is not None
    other = await act(make_key)
    # Nothing tells of either.
    await act(ControlEvent.objects.all().delete)
    await act(ApiKey.objects.filter(prefix=prefix_of(known)).update, revoked_at=timezone.now())
    assert await cache.find(known) is not None

    await feed.read()
    assert await cache.find(known) is None
    assert await cache.find(other) is not None


def away() -> None:
    raise OperationalError("the database is away")


async def test_stranger_is_told_to_come_again_while_nobody_can_tell(
    feed: EventFeed, cache: ApiKeyCache
) -> None:
    with pytest.raises(OperationalError):
        await feed.ask(away)
    with pytest.raises(Overloaded):
        await cache.find(generate_key())
