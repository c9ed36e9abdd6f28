"""Who is at the other end of a socket."""

import time
from io import BytesIO

from django.core.handlers.asgi import ASGIRequest
from msgspec import UNSET, UnsetType

from accounts.keys import Caller
from accounts.limits import throttle
from core.addresses import address_of, came_plain, header, is_loopback, note_known
from market.streams.protocol.refusals import StreamRefused, invalid
from serving.websocket.session import Scope

from .authenticated import authenticated_sessions

# Still 4401: no waiting makes the same key valid, and a client that hears 4429 would try it again.
TOO_MANY_FAILURES = "Too many attempts without a valid API key from this address. Wait, then send one."


class Identity:
    """The key that a socket showed last. Cookies and the address say nothing here."""

    __slots__ = ("_scope", "_sent", "caller", "key")

    def __init__(self, scope: Scope) -> None:
        self._scope, self._sent = scope, header(scope, b"x-api-key")
        self.key = ""
        self.caller: Caller | None = None

    @property
    def expires_at(self) -> float | None:
        return None if self.caller is None else self.caller.expires_at

    @property
    def has_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= time.time()

    async def show(self, key: str | UnsetType) -> Caller:
        """The caller, by the key of a message, else by the one shown before or with the handshake."""
        shown = (self.key or self._sent or "") if key is UNSET else key
        if self.caller is not None and shown == self.key:
            return self.caller
        if shown and came_plain(self._scope):
            raise StreamRefused("https_required")
        caller = await self._checked(await authenticated_sessions.find(shown) if shown else None)
        if self.caller is not None and caller.account_id != self.caller.account_id:
            raise invalid("This socket belongs to another account: open one for each.", "api_key")
        self.key, self.caller = shown, caller
        note_known(self._scope)
        return caller

    async def look_again(self) -> Caller:
        """What the caller may do now."""
        self.caller = await self._checked(await authenticated_sessions.find_again(self.key))
        return self.caller

    async def _checked(self, caller: Caller | None) -> Caller:
        if caller is None or (caller.is_demo and not self._is_local()):
            raise await self._refusal()
        return caller

    async def _refusal(self) -> StreamRefused:
        """Counted with the failures of REST. Whoever had too many is told when to stop guessing."""
        standing = await throttle.note_failure(address_of(self._scope))
        if standing.admitted:
            return StreamRefused("invalid_api_key")
        return StreamRefused("invalid_api_key", TOO_MANY_FAILURES, retry_after=max(1, standing.wait_s))

    def _is_local(self) -> bool:
        return is_loopback(ASGIRequest({**self._scope, "method": "GET"}, BytesIO()))
