"""What ends access counts for open sockets also where the database cannot be asked what it means for them."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.keys.browser_tokens import BROWSER_TOKEN_LEAD
from accounts.keys.cache import ApiKeyCache
from accounts.keys.caller import Caller
from core.contract.errors import Overloaded
from core.events.event_feed import EventFeed
from core.events.kinds import EventKind
from core.events.outbox import EventMessage
from market.streams.sessions.authenticated import AuthenticatedSessions, Identity
from tests.core.events.following import follow

from .test_consumer import CALLER

# Of no time of day: the test may run hours after it is collected.
OVER_S, FAR_OFF_S = 1e9, 1e10
PAGE = f"{BROWSER_TOKEN_LEAD}x"


class FoundNobody(ApiKeyCache):
    def __init__(self, *, is_away: bool = True) -> None:
        super().__init__(EventFeed())
        self.is_away = is_away

    async def find_again(self, key: str) -> Caller | None:
        if self.is_away:
            raise Overloaded(retry_after=1)
        return None


class Held:
    """A socket of account 1, by its key 1 or by a page."""

    is_open = True

    def __init__(self, key: str) -> None:
        self.identity = Identity({"headers": []})
        self.identity.key, self.identity.caller = key, CALLER

    def renew(self, caller: Caller | None) -> None:
        self.is_open = caller is not None

    def check_time(self, now_s: float) -> None: ...

    def give_up(self) -> None: ...


async def hear(kind: str, cache: FoundNobody, **facts: Any) -> tuple[bool, bool]:
    """Whether a socket by a key and one by a page are open afterwards."""
    feed = EventFeed()
    sockets, by_key, by_page = AuthenticatedSessions(cache), Held("tw_live_x"), Held(PAGE)
    follow(feed, sockets)
    for held in (by_key, by_page):
        sockets.add(held, 1)
    event = EventMessage(0, kind, {"account": 1, **facts} if kind != EventKind.BEGAN_ANEW else {})
    if cache.is_away:
        try:
            await feed.handle(event)
        except Overloaded:
            assert kind != EventKind.ACCOUNT_CHANGED or facts.get("active") is not False
    else:
        await feed.handle(event)
    return by_key.is_open, by_page.is_open


@pytest.mark.parametrize(
    ("kind", "facts", "open_after"),
    [
        (EventKind.ACCOUNT_CHANGED, {"active": False}, (False, False)),
        (EventKind.ACCOUNT_CHANGED, {"active": True}, (True, True)),
        (EventKind.ACCOUNT_CHANGED, {}, (True, True)),
        (EventKind.KEY_ROLLED, {"key": 1, "ends_at": OVER_S}, (False, False)),
        (EventKind.KEY_ROLLED, {"key": 1, "ends_at": FAR_OFF_S}, (True, True)),
        (EventKind.KEY_ROLLED, {"key": 2, "ends_at": OVER_S}, (True, True)),
        (EventKind.SESSION_ENDED, {}, (True, False)),
        (EventKind.PASSWORD_CHANGED, {}, (True, False)),
    ],
)
async def test_without_the_database(kind: str, facts: dict[str, Any], open_after: tuple[bool, bool]) -> None:
    assert await hear(kind, FoundNobody(), **facts) == open_after


@pytest.mark.parametrize("kind", [EventKind.ACCOUNT_CHANGED, EventKind.SESSION_ENDED, EventKind.BEGAN_ANEW])
async def test_with_it_what_it_says_counts(kind: str) -> None:
    assert await hear(kind, FoundNobody(is_away=False)) == (False, False)
