"""KEY_PEPPER changes: keys of before are found with the fallbacks, and hashed anew while they are used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import call_command
from pytest_django.fixtures import Settings

from accounts.key_text import digest_of, generate_key, prefix_of
from accounts.keys.cache import ApiKeyCache
from accounts.keys.issuing import Rehasher, replace, revoke_key, to_be_replaced
from accounts.models import ApiKey, User
from accounts.secrets import name_of
from core.encryption import seal
from core.events.event_feed import EventFeed
from market.push.keys import IngestKeyCache, issue_ingest_key
from tests.core.events.following import follow
from tests.databases.queries import count_queries
from tests.factories import make_key, make_user

from .known_keys import act, revoke, row

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services]
OLD, NEW = "the pepper of before", "the pepper of now"


async def started(cache: Any) -> Any:
    await cache.start()
    await cache.loading
    return cache


@pytest.fixture
async def caches(feed: EventFeed) -> AsyncIterator[Callable[[], Any]]:
    """Makes what a process that starts now knows of API keys."""
    made = []

    async def make() -> ApiKeyCache:
        cache = ApiKeyCache(feed)
        follow(feed, cache, cache.pages)
        made.append(await started(cache))
        return cache

    yield make
    for cache in made:
        await cache.stop()


def use(settings: Settings, pepper: str, *fallbacks: str) -> None:
    settings.KEY_PEPPER, settings.KEY_PEPPER_FALLBACKS = pepper, [*fallbacks]


@pytest.fixture
def key(settings: Settings) -> str:
    use(settings, OLD)
    key = make_key()
    use(settings, NEW, OLD)
    return key


async def test_key_of_before_is_found_with_one_query_and_an_unknown_one_with_none(
    caches: Any, key: str, settings: Settings
) -> None:
    settings.KEY_PEPPER_FALLBACKS = [OLD, "older", "oldest"]
    cache = await caches()
    with count_queries() as asked:
        assert await cache.find(key) is not None
        assert await cache.find(key) is not None
        assert await cache.find(generate_key()) is None
    assert len([sql for sql in asked if "apikey" in sql]) == 1
    settings.KEY_PEPPER_FALLBACKS = []
    assert await (await caches()).find(key) is None


async def test_used_key_is_hashed_anew_and_needs_no_fallback_then(
    caches: Any, key: str, settings: Settings
) -> None:
    cache = await caches()
    await cache.find(key)
    await Rehasher(cache).rehash()
    kept = await act(row, key)
    assert (kept.digest, kept.pepper_name) == (digest_of(key, NEW), name_of(NEW))
    assert await cache.find(key) is not None
    settings.KEY_PEPPER_FALLBACKS = []
    assert await (await caches()).find(key) is not None


async def test_process_that_knew_the_old_hash_finds_the_key_after_another_hashed_it_anew(
    caches: Any, key: str
) -> None:
    one, other = await caches(), await caches()
    await one.find(key)
    await Rehasher(one).rehash()
    assert await other.find(key) is not None


async def test_process_that_is_told_of_the_new_pepper_beforehand_finds_what_others_issue_with_it(
    caches: Any, settings: Settings
) -> None:
    use(settings, OLD, NEW)
    before = await caches()
    use(settings, NEW, OLD)
    issued = await act(make_key)
    assert (await act(row, issued)).digest == digest_of(issued, NEW)
    assert await before.find(issued) is not None


async def test_key_that_another_process_hashed_back_is_hashed_anew_again(
    caches: Any, key: str, settings: Settings
) -> None:
    cache = await caches()
    rehasher = Rehasher(cache)
    await cache.find(key)
    await rehasher.rehash()
    back = {"digest": digest_of(key, OLD), "pepper_name": name_of(OLD)}
    await act(ApiKey.objects.update, **back)
    await rehasher.rehash()
    assert (await act(row, key)).digest == digest_of(key, NEW)


def test_row_that_changes_twice_meanwhile_is_left_as_it_is(key: str) -> None:
    number, anew = row(key).pk, digest_of(key, NEW)
    ((_, found),) = to_be_replaced(ApiKey, {number: anew})
    for pepper in (NEW, "the pepper after that"):
        ApiKey.objects.update(digest=digest_of(key, pepper), pepper_name=name_of(pepper))
    replace(ApiKey, number, found, anew)
    assert row(key).pepper_name == name_of("the pepper after that")


@pytest.mark.parametrize("is_used_first", [True, False])
async def test_revoked_key_stays_revoked_whatever_it_was_hashed_with(
    feed: EventFeed, caches: Any, key: str, is_used_first: bool
) -> None:
    cache = await caches()
    if is_used_first:
        await cache.find(key)
        await Rehasher(cache).rehash()
    await revoke(key)
    await feed.read()
    assert await cache.find(key) is None
    assert await (await caches()).find(key) is None


async def test_row_of_the_version_before_is_named_when_its_key_is_used(
    caches: Any, settings: Settings
) -> None:
    settings.KEY_PEPPER_FALLBACKS = []
    key = await act(make_key)
    await act(ApiKey.objects.update, pepper_name="")
    cache = await caches()
    rehasher = Rehasher(cache)
    await cache.find(key)
    await rehasher.rehash()
    assert (await act(row, key)).pepper_name == name_of(settings.KEY_PEPPER)
    with count_queries() as asked:
        await rehasher.rehash()
    assert asked == []


async def test_ingest_key_is_hashed_anew_too(feed: EventFeed, settings: Settings) -> None:
    use(settings, OLD)
    key, secret = await act(issue_ingest_key, "desk", by="test")
    use(settings, NEW, OLD)
    cache = await started(IngestKeyCache(feed))
    assert await cache.find(secret) is not None
    await Rehasher(cache).rehash()
    await act(key.refresh_from_db)
    assert (key.digest, key.pepper_name) == (digest_of(secret, NEW), name_of(NEW))
    await cache.stop()


def rotate() -> str:
    out = StringIO()
    call_command("rotate_secrets", stdout=out, stderr=out, skip_checks=True)
    return out.getvalue()


NEEDED = "KEY_PEPPER_FALLBACKS are still needed by 1 keys."
FREE = "No row needs KEY_PEPPER_FALLBACKS any more: they can be removed."


def hash_anew(key: str) -> None:
    ApiKey.objects.filter(pk=row(key).pk).update(digest=digest_of(key, NEW), pepper_name=name_of(NEW))


@pytest.mark.parametrize(
    ("change", "counted", "verdict"),
    [
        (lambda key: None, "API keys: 1 with the current pepper.", NEEDED),
        (hash_anew, "API keys: 2 with the current pepper.", FREE),
        (lambda key: revoke_key(row(key), by="test"), "API keys: 1 with the current pepper.", FREE),
        (
            lambda key: User.objects.filter(account__keys=row(key)).update(is_active=False),
            "API keys of deactivated users: 0 with the current pepper.",
            NEEDED,
        ),
    ],
    ids=["used with it", "hashed anew", "revoked", "of a user who may be let in again"],
)
def test_command_says_whether_the_fallback_is_needed(
    key: str, change: Callable[[str], object], counted: str, verdict: str
) -> None:
    make_key()
    change(key)
    text = rotate()
    assert counted in text
    assert verdict in text
    assert (f"{prefix_of(key)}…  never used  test" in text) is (verdict is NEEDED)


def test_command_lets_no_fallback_go_while_a_second_factor_has_an_unknown_seal(settings: Settings) -> None:
    use(settings, "one that nobody has")
    sealed = seal("secret")
    use(settings, NEW, OLD)
    Authenticator.objects.create(user=make_user(), type=Authenticator.Type.TOTP, data={"secret": sealed})
    text = rotate()
    assert "1 second factors are opened by no pepper that is set" in text
    assert "may go" not in text
    assert "Keep KEY_PEPPER_FALLBACKS" in text


def test_command_names_a_pepper_that_is_missing(key: str, settings: Settings) -> None:
    settings.KEY_PEPPER_FALLBACKS = []
    assert "API keys: 1 have a pepper that is not set, so they do not work." in rotate()
