"""The base of the REST contract: DRF's viewset and router, with a `dispatch` that awaits."""

import re
import time
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

from asgiref.sync import markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from rest_framework.request import Request
from rest_framework.routers import SimpleRouter
from rest_framework.viewsets import ViewSet

from core.addresses import address_of, scope_of
from core.contract.answers import ID_HEADER, ON_PREFLIGHT, Answer, started_at
from core.contract.errors import MethodNotAllowed, NotFound, new_request_id
from core.contract.parameters import QuerySerializer, read_parameters
from core.logs import Served, log_request
from core.request_headers import check_host, refuse_plain


class ApiViewSet(ViewSet):
    """Actions return an `Answer` and raise `ApiError`. What memory alone answers is a plain function that
    reads nothing of its request but the parameters; any other action is a coroutine."""

    request: Request
    scope: dict[str, Any]
    format_kwarg = None
    headers: dict[str, str]
    """Sent with the answer or the refusal."""

    @classmethod
    def as_view(cls, actions: Any = None, **initkwargs: Any) -> Callable[..., Any]:  # type: ignore[override]
        return markcoroutinefunction(super().as_view(actions, **initkwargs))

    async def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        """Like DRF's, but keys, windows and actions are awaited, and the request is logged."""
        self.scope = request.scope = scope_of(request)  # type: ignore[attr-defined]
        began_s = started_at(self.scope)
        self.request = self.initialize_request(request, *args, **kwargs)
        self.request.user = self.request.auth = None  # type: ignore[assignment]
        self.headers = self.default_response_headers
        try:
            if request.method != "OPTIONS":
                await self.initial(self.request)
            answer = self.handler_of(str(request.method))(self.request, *args, **kwargs)
            if isawaitable(answer):
                answer = await answer
        except Exception as error:  # noqa: BLE001 - the top of a request: every fault becomes the one error body
            answer = self.handle_exception(error)
        response = self.finalize_response(self.request, answer)
        took_s = time.perf_counter() - began_s
        # Hardly any answer is logged, so the check must be cheap.
        if answer.status >= 400 or settings.ACCESS_LOG or 0 < settings.SLOW_REQUEST_MS <= took_s * 1000:
            self._log(request, answer, took_s)
        return response

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {ID_HEADER: new_request_id()}

    async def initial(self, request: Request) -> None:  # type: ignore[override]
        """Before the action, in this order: a key in the clear, the key, its window, the host."""
        refuse_plain(self.scope)
        await self.perform_authentication(request)
        await self.check_throttles(request)
        check_host(self.scope)

    async def perform_authentication(self, request: Request) -> None:  # type: ignore[override]
        """Raises `ApiError` where there is no valid key."""
        for authenticator in self.get_authenticators():
            request.user, request.auth = await authenticator.authenticate(request)  # type: ignore[misc]

    async def check_throttles(self, request: Request) -> None:  # type: ignore[override]
        """Raises `ApiError` where the window is used up."""
        for throttle in self.get_throttles():
            await throttle.allow_request(request, self)  # type: ignore[misc]

    def handler_of(self, method: str) -> Callable[..., Any]:
        name = method.lower() if method.lower() in self.http_method_names else "http_method_not_allowed"
        return getattr(self, name, self.http_method_not_allowed)

    def options(self, request: Request, *args: Any, **kwargs: Any) -> Answer:  # type: ignore[override]
        return Answer(b"", {"Allow": ", ".join(self.allowed_methods), **ON_PREFLIGHT}, status=204)

    def http_method_not_allowed(self, request: Request, *args: Any, **kwargs: Any) -> Answer:  # type: ignore[override]
        raise MethodNotAllowed(self.allowed_methods)

    def finalize_response(self, request: Request, answer: Answer) -> HttpResponseBase:  # type: ignore[override]
        renderer, _ = self.perform_content_negotiation(request)
        return answer.as_response(request.method, self.headers, renderer)  # type: ignore[arg-type]

    def parameters(self, serializer: type[QuerySerializer]) -> dict[str, Any]:
        # Broken UTF-8 becomes U+FFFD, which no parameter accepts.
        return read_parameters(serializer, self.scope["query_string"].decode(errors="replace"))

    def _log(self, request: HttpRequest, answer: Answer, took_s: float) -> None:
        (authenticator,) = self.get_authenticators()
        log_request(
            Served(
                str(request.method),
                request.path,
                getattr(request, "route", ""),
                answer.status,
                took_s,
                self.headers[ID_HEADER],
                address_of(self.scope),
                authenticator.log_fields(self.request),  # type: ignore[attr-defined]
                answer.code,
            )
        )


# EUR/USD where a symbol belongs: other services write pairs in this way.
PAIR_WITH_SLASH = re.compile(
    r"/api/(?:market|orderflow|analysis)/([a-z]{3,5})/(?!quote\b)([a-z]{3,5})(?:/|$)", re.I
)


class UnknownPathViewSet(ApiViewSet):
    """Every other path below /api: without a valid key it is refused as the known ones are."""

    def absent(self, request: Request) -> Answer:
        pair = PAIR_WITH_SLASH.match(self.scope["path"])
        raise NotFound(NotFound.WITH_SLASH.format(symbol="".join(pair.groups()).upper()) if pair else "")

    def handler_of(self, method: str) -> Callable[..., Any]:
        return self.options if method == "OPTIONS" else self.absent


class ApiRouter(SimpleRouter):
    """Paths are the same with a slash at their end and without."""

    def __init__(self) -> None:
        super().__init__()
        self.trailing_slash = "/?"
