"""Finding the caller behind an API key, or behind the token of one of our own pages."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
from django.conf import settings

from accounts.models import ApiKey, PageSession
from core.background import SharedLookups
from core.events.feed import EventFeed, feed
from core.threads import in_thread_promptly

from .browser_tokens import BROWSER_TOKEN_LEAD, BrowserToken, read_browser_token
from .cache import KeyCache
from .caller import Caller
from .marked_cache import MarkedKeyCache
from .text import API_KEY_LEAD

# No API key has this number, so the end of none is the end of a page.
NO_KEY = 0


class BrowserPage(msgspec.Struct, frozen=True):
    """One of our own pages, by one of its tokens."""

    key_id: int
    """Its session's."""
    caller: Caller
    token: BrowserToken


class BrowserTokenCache(KeyCache[BrowserPage]):
    lead = BROWSER_TOKEN_LEAD
    model = PageSession
    # Each page brings a new token every few minutes: above so many, those that have ended are dropped.
    SWEEP_ABOVE = 1_000

    def __init__(self, events: EventFeed) -> None:
        super().__init__(events)
        self._sweep_above = self.SWEEP_ABOVE
        self._callers: SharedLookups[int, Caller | None] = SharedLookups()

    def has_ended(self, holder: BrowserPage) -> bool:
        return holder.token.has_ended

    async def find_caller(self, key: str) -> Caller | None:
        page = await self.find(key)
        return None if page is None else page.caller

    async def find_again(self, key: str) -> Caller | None:
        """For a socket that is open already: its session counts, not how old the token has become."""
        token = read_browser_token(key)
        return None if token is None else await self._find_caller(token)

    async def _ask(self, key: str, digest: bytes) -> BrowserPage | None:
        token = read_browser_token(key)
        if token is None or token.has_ended:
            return None
        return await self._found(digest, self._page_of(token))

    async def _find_caller(self, token: BrowserToken) -> Caller | None:
        """A page can have many tokens at once, and all of them look for the same."""
        look = partial(in_thread_promptly, find_browser_caller, token.page_session)
        return await self._callers.ask(token.page_session, look)

    async def _page_of(self, token: BrowserToken) -> BrowserPage | None:
        caller = await self._find_caller(token)
        return None if caller is None else BrowserPage(token.page_session, caller, token)

    def _remember(self, digest: bytes, holder: BrowserPage) -> None:
        if len(self._known) >= self._sweep_above:
            self._known = {each: page for each, page in self._known.items() if not self.has_ended(page)}
            self._sweep_above = max(self.SWEEP_ABOVE, 2 * len(self._known))
        super()._remember(digest, holder)

    def drop(self, facts: dict[str, Any]) -> None:
        changed = facts.get("account")
        self.forget(lambda page: changed is None or page.caller.account_id == changed)

    def look_up(self, digest: str) -> BrowserPage | None:
        """Nothing is stored of a token."""
        return None


def find_browser_caller(page_session: int) -> Caller | None:
    found = (
        PageSession.objects.filter(pk=page_session, account__user__is_active=True)
        .select_related("account__tier", "account__user")
        .first()
    )
    session = None if found is None else found.session()
    if found is None or session is None or (found.account.is_visitor and not settings.DEMO):
        return None
    return Caller.from_account(found.account, key_id=NO_KEY, expires_at=session.expire_date.timestamp())


class ApiKeyCache(MarkedKeyCache[Caller]):
    lead = API_KEY_LEAD
    model = ApiKey

    def __init__(self, events: EventFeed) -> None:
        super().__init__(events)
        self.pages = BrowserTokenCache(events)

    async def find(self, key: str) -> Caller | None:
        if key.startswith(BROWSER_TOKEN_LEAD):
            return await self.pages.find_caller(key)
        return await super().find(key)

    async def find_again(self, key: str) -> Caller | None:
        """For a socket that showed it before: a page's goes on after its token's end."""
        if key.startswith(BROWSER_TOKEN_LEAD):
            return await self.pages.find_again(key)
        return await self.find(key)

    async def record_use(self, *, all_of_it: bool = False) -> None:
        await super().record_use(all_of_it=all_of_it)
        await self.pages.record_use(all_of_it=all_of_it)

    def look_up(self, digest: str) -> Caller | None:
        return find_caller(digest)

    def has_ended(self, holder: Caller) -> bool:
        return holder.expires_at is not None and holder.expires_at <= time.time()

    def drop(self, facts: dict[str, Any]) -> None:
        """Forget the account that changed, or everybody where no account is named."""
        changed = facts.get("account")
        self.forget(lambda caller: changed is None or caller.account_id == changed)


def find_caller(digest: str) -> Caller | None:
    key = (
        ApiKey.objects.usable(datetime.now(UTC))
        .of_active_users()
        .select_related("account__tier", "account__user")
        .filter(digest=digest)
        .first()
    )
    if key is None:
        return None
    expires_at = key.expires_at.timestamp() if key.expires_at else None
    return Caller.from_account(key.account, key_id=key.pk, expires_at=expires_at)


key_cache = ApiKeyCache(feed)
