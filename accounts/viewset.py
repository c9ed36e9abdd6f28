"""The REST contract behind an API key: the caller is found, and the request counted against their limits."""

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.http import HttpRequest

from accounts.key_text import shown_prefix
from accounts.keys.cache import key_cache
from accounts.keys.caller import Caller
from accounts.limits.throttling import rate_limit_refusal, throttle
from accounts.limits.window import Standing
from accounts.usage import usage_buffer
from core.addresses import is_loopback
from core.contract.answers import Answer, begun
from core.contract.errors import InvalidApiKey, MissingApiKey, NotFound
from core.request_headers import header
from core.viewset import ApiViewSet
from serving.http.connections import note_known

# EUR/USD where a symbol belongs: other services write pairs in this way.
PAIR_WITH_SLASH = re.compile(
    r"/api/(?:market|orderflow|analysis)/([a-z]{3,5})/(?!quote\b)([a-z]{3,5})(?:/|$)", re.I
)


class KeyedViewSet(ApiViewSet):
    is_free: ClassVar[bool] = False
    """A free path answers even when the window is used up."""
    caller: Caller
    _account: int | None = None

    async def admit(self, request: HttpRequest, headers: dict[str, str]) -> None:
        self.caller = await self._identify(request)
        self._account = self.caller.account_id
        standing = await self._stand()
        headers |= standing.headers(self.caller.policy)
        if self.is_free:
            return
        if not standing.admitted:
            raise rate_limit_refusal(standing, self.caller)
        if not self.caller.is_page:
            usage_buffer.note_request(self.caller.account_id)

    async def _stand(self) -> Standing:
        if self.is_free:
            return await throttle.look(self.caller)
        before = begun(self.scope)
        return await throttle.admit(self.caller) if before is None else before.standing

    def known_by(self) -> Mapping[str, object]:
        key = shown_prefix(header(self.scope, b"x-api-key") or "")
        known = {"key": key, "account": self._account}
        return {name: value for name, value in known.items() if value}

    async def _identify(self, request: HttpRequest) -> Caller:
        key = header(self.scope, b"x-api-key")
        caller = await key_cache.find(key) if key else None
        if caller is None or (caller.is_demo and not is_loopback(request)):
            await throttle.count_failure(request.META.get("REMOTE_ADDR") or "")
            error = InvalidApiKey() if key else self._missing_key()
            error.headers["WWW-Authenticate"] = "ApiKey"
            raise error
        note_known(self.scope)
        return caller

    def _missing_key(self) -> MissingApiKey:
        is_elsewhere = header(self.scope, b"authorization") is not None
        return MissingApiKey(MissingApiKey.IN_ANOTHER if is_elsewhere else "")


class UnknownPathViewSet(KeyedViewSet):
    """Every other path below /api: without a valid key it is refused as the known ones are."""

    def action_for(self, method: str) -> Callable[..., Any]:
        return self.absent

    async def absent(self) -> Answer:
        pair = PAIR_WITH_SLASH.match(self.scope["path"])
        raise NotFound(NotFound.WITH_SLASH.format(symbol="".join(pair.groups()).upper()) if pair else "")
