"""DRF's authentication and throttles of the REST contract: whose key it is, and the window of its account."""

from collections.abc import Mapping
from typing import Any, cast

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from core.addresses import address_of, is_loopback
from core.contract.answers import already_done
from core.contract.errors import InvalidApiKey, MissingApiKey
from core.request_headers import header
from serving.http.connections import note_known

from .key_text import shown_prefix
from .keys.cache import key_cache
from .keys.caller import Caller
from .limits.throttling import rate_limit_refusal, throttle
from .usage import usage_buffer


class ApiKeyAuthentication(BaseAuthentication):
    async def authenticate(self, request: Request) -> tuple[Caller, str]:  # type: ignore[override]
        scope = request.scope  # type: ignore[attr-defined]
        key = header(scope, b"x-api-key")
        caller = await key_cache.find(key) if key else None
        if caller is None or key is None or (caller.is_demo and not is_loopback(scope)):
            await throttle.count_failure(address_of(scope))
            raise InvalidApiKey() if key else MissingApiKey(self._missing(scope))
        note_known(scope)
        return caller, key

    def authenticate_header(self, request: Request) -> str:
        return "ApiKey"

    def log_fields(self, request: Request) -> Mapping[str, object]:
        """The key and account, as the log names them."""
        key = shown_prefix(header(request.scope, b"x-api-key") or "")  # type: ignore[attr-defined]
        account = None if request.user is None else caller_of(request).account_id
        known = {"key": key, "account": account}
        return {name: value for name, value in known.items() if value}

    def _missing(self, scope: dict[str, Any]) -> str:
        return MissingApiKey.IN_ANOTHER if header(scope, b"authorization") is not None else ""


def caller_of(request: Request) -> Caller:
    return cast(Caller, request.user)


class WindowThrottle(BaseThrottle):
    """The exact window: DRF's own admit more than the limit to requests that come at the same time."""

    async def allow_request(self, request: Request, view: Any) -> bool:  # type: ignore[override]
        caller, before = caller_of(request), already_done(view.scope)
        standing = await throttle.admit(caller) if before is None else before.standing
        view.headers |= standing.headers(caller.policy)
        if not standing.admitted:
            raise rate_limit_refusal(standing, caller)
        if not caller.is_page:
            usage_buffer.note_request(caller.account_id)
        return True


class FreeOfCharge(BaseThrottle):
    """Answers even when the window is used up, with the state of the window."""

    async def allow_request(self, request: Request, view: Any) -> bool:  # type: ignore[override]
        caller = caller_of(request)
        view.headers |= (await throttle.look(caller)).headers(caller.policy)
        return True
