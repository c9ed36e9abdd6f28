"""Finding the caller behind a page token."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from django.conf import settings

from . import page_tokens
from .callers import caller_of
from .events import EventFeed
from .models import PageSession
from .page_tokens import PageToken
from .rings import Ring
from .shared_looks import SharedLooks
from .threads import in_thread_promptly
from .tiers import Caller

# No API key has this number, so the end of none is the end of a page.
NO_KEY = 0


class Page(msgspec.Struct, frozen=True):
    """One of our own pages, by one of its tokens."""

    key_id: int
    """Its session's."""
    caller: Caller
    token: PageToken


class PageRing(Ring[Page]):
    lead = page_tokens.LEAD
    model = PageSession
    # Each page brings a new token every few minutes: above so many, those that have ended are dropped.
    SWEEP_ABOVE = 1_000

    def __init__(self, events: EventFeed) -> None:
        super().__init__(events)
        self._sweep_above = self.SWEEP_ABOVE
        self._callers: SharedLooks[int, Caller | None] = SharedLooks()
        for kind in ("session.ended", "password.changed", "account.changed", "tier.changed"):
            events.on(kind, self.drop)

    def has_ended(self, holder: Page) -> bool:
        return holder.token.has_ended

    async def find_caller(self, key: str) -> Caller | None:
        page = await self.find(key)
        return None if page is None else page.caller

    async def find_again(self, key: str) -> Caller | None:
        """For a socket that is open already: its session counts, not how old the token has become."""
        token = page_tokens.read(key)
        return None if token is None else await self._find_caller(token)

    async def _ask(self, key: str, digest: bytes) -> Page | None:
        token = page_tokens.read(key)
        if token is None or token.has_ended:
            return None
        return await self._found(digest, self._page_of(token))

    async def _find_caller(self, token: PageToken) -> Caller | None:
        """A page can have many tokens at once, and all of them look for the same."""
        look = partial(in_thread_promptly, find_page_caller, token.page_session)
        return await self._callers.ask(token.page_session, look)

    async def _page_of(self, token: PageToken) -> Page | None:
        caller = await self._find_caller(token)
        return None if caller is None else Page(token.page_session, caller, token)

    def _remember(self, digest: bytes, holder: Page) -> None:
        if len(self._known) >= self._sweep_above:
            self._known = {each: page for each, page in self._known.items() if not self.has_ended(page)}
            self._sweep_above = max(self.SWEEP_ABOVE, 2 * len(self._known))
        super()._remember(digest, holder)

    def drop(self, facts: dict[str, Any]) -> None:
        changed = facts.get("account")
        self.forget(lambda page: changed is None or page.caller.account_id == changed)

    def look_up(self, digest: str) -> Page | None:
        """Nothing is stored of a token."""
        return None


def find_page_caller(page_session: int) -> Caller | None:
    found = (
        PageSession.objects.filter(pk=page_session, account__user__is_active=True)
        .select_related("account__tier", "account__user")
        .first()
    )
    session = None if found is None else found.session()
    if found is None or session is None or (found.account.is_visitor and not settings.DEMO):
        return None
    return caller_of(found.account, key_id=NO_KEY, expires_at=session.expire_date.timestamp())
