"""Row 33: the time that a refusal takes does not tell a key that was revoked from one that never was."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Sequence
from itertools import groupby
from typing import Any

import pytest

from accounts.key_text import generate_key
from accounts.keys.cache import ApiKeyCache
from accounts.keys.issuing import revoke_key
from accounts.models import ApiKey
from core.events.event_feed import EventFeed
from core.threads import in_thread
from tests.core.events.following import follow
from tests.factories import make_account, make_key
from tests.patience import PATIENCE_S
from tests.reliability.fixtures import Tell

ASKED, KEYS = 5_000, 20
# Where nothing differs, one try in a hundred falls below: three that all do are no chance.
LEAST_P, TRIES = 0.01, 3
Keys = tuple[list[str], list[str]]
"""Those that never were, and revoked ones."""
pytestmark = pytest.mark.usefixtures("transactional_db")


class Leaky(ApiKeyCache):
    """What never was is refused before anything is asked."""

    issued: frozenset[str] = frozenset()

    async def ask(self, key: str, digest: bytes) -> Any:
        return await super().ask(key, digest) if key in self.issued else None


@pytest.fixture
async def feed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EventFeed]:
    """Whoever asks has it read at once: waiting for the next turn would cover what is looked for."""
    monkeypatch.setattr("core.events.event_feed.SURE_EVERY_S", 0.0)
    running = EventFeed()
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def issued() -> list[str]:
    def make() -> list[str]:
        account = make_account()
        return [make_key(account) for _ in range(KEYS)]

    made: list[str] = await in_thread(make)
    return made


async def revoke_under(ring: ApiKeyCache, feed: EventFeed, issued: list[str]) -> None:
    """The keys have been used there, and end while it runs."""

    def revoke() -> None:
        for key in ApiKey.objects.all():
            revoke_key(key, by="test")

    follow(feed, ring)
    await ring.start()
    async with asyncio.timeout(PATIENCE_S):
        assert ring.loading is not None
        await ring.loading
    assert None not in [await ring.find(key) for key in issued]
    await in_thread(revoke)
    await feed.read()


async def times(ring: ApiKeyCache, keys: Keys, dice: random.Random) -> tuple[list[int], list[int]]:
    """In nanoseconds, in an order that nobody can foresee."""
    took: tuple[list[int], list[int]] = [], []
    turns = [0, 1] * ASKED
    dice.shuffle(turns)
    for turn in turns:
        # A key made just now would be measured with its making, which changes the processor's caches.
        key = dice.choice(keys[turn])
        began_at = time.perf_counter_ns()
        assert await ring.find(key) is None
        took[turn].append(time.perf_counter_ns() - began_at)
    return took


def mann_whitney(left: Sequence[int], right: Sequence[int]) -> float:
    """The p of both sides, by the normal approximation with its correction for ties."""
    marked = sorted([(value, True) for value in left] + [(value, False) for value in right])
    rank_sum, ties, at = 0.0, 0, 0
    for _, same in groupby(marked, key=lambda each: each[0]):
        group = [is_left for _, is_left in same]
        rank_sum += sum(group) * (at + (len(group) + 1) / 2)
        ties += len(group) ** 3 - len(group)
        at += len(group)
    n, m = len(left), len(right)
    u = rank_sum - n * (n + 1) / 2
    spread = math.sqrt(n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1))))
    return math.erfc(abs(u - n * m / 2) / spread / math.sqrt(2)) if spread else 1.0


async def tried(ring: ApiKeyCache, feed: EventFeed, issued: list[str], seed: int) -> list[float]:
    """Until the times are not told apart."""
    await revoke_under(ring, feed, issued)
    keys = [generate_key() for _ in range(KEYS)], issued
    dice, found = random.Random(seed), list[float]()  # noqa: S311
    # All have been asked for before: what is made once is made.
    await times(ring, keys, dice)
    while len(found) < TRIES and (not found or found[-1] <= LEAST_P):
        found.append(mann_whitney(*await times(ring, keys, dice)))
    await ring.stop()
    return found


@pytest.mark.row("33", "no measurable difference between unknown and revoked keys (p > 0.01)")
async def test_unknown_and_revoked_keys_are_refused_in_the_same_time(
    feed: EventFeed, issued: list[str], tell: Tell, seed: int
) -> None:
    found = await tried(ApiKeyCache(feed), feed, issued, seed)
    tell(f"{ASKED} of each: p = {', '.join(f'{p:.3f}' for p in found)}")
    assert found[-1] > LEAST_P


@pytest.mark.row("33", "an early exit is seen")
async def test_control_an_early_exit_is_noticed_each_time(
    feed: EventFeed, issued: list[str], tell: Tell, seed: int
) -> None:
    ring = Leaky(feed)
    ring.issued = frozenset(issued)
    found = await tried(ring, feed, issued, seed)
    tell(f"with unknown keys refused immediately: p = {', '.join(f'{p:.1e}' for p in found)}")
    assert len(found) == TRIES
    assert max(found) <= LEAST_P
