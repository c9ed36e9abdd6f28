"""The base of the REST contract. A viewset's `dispatch` is a coroutine here: it admits, runs the action and
adds the headers, without a thread unless the action needs the ORM."""

import time
from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import Any

from asgiref.sync import markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from rest_framework.viewsets import ViewSet

from core.addresses import address_of
from core.contract.answers import METHODS, ON_PREFLIGHT, Answer, begun_at
from core.contract.errors import MethodNotAllowed, answer_exception, new_request_id
from core.contract.parameters import QuerySerializer, read_parameters
from core.logs import Served, log_request
from core.request_headers import check_host, refuse_plain


def scope_of(request: HttpRequest) -> dict[str, Any]:
    """The ASGI scope, or what we use of it where Django handles synchronously, as its test client does."""
    try:
        return request.scope  # type: ignore[attr-defined, no-any-return]
    except AttributeError:
        return {
            "headers": [(name.lower().encode(), value.encode()) for name, value in request.headers.items()],
            "http_version": request.META.get("SERVER_PROTOCOL", "HTTP/1.1")[5:],
            "query_string": request.META.get("QUERY_STRING", ""),
        }


class ApiViewSet(ViewSet):
    """Actions return an `Answer` and raise `ApiError`. What memory alone answers is a plain function, which
    takes nothing but its names and parameters; any other is a coroutine."""

    scope: dict[str, Any]
    request: HttpRequest  # type: ignore[assignment]

    @classmethod
    def as_view(cls, actions: Any = None, **initkwargs: Any) -> Callable[..., Any]:  # type: ignore[override]
        return markcoroutinefunction(super().as_view(actions, **initkwargs))

    async def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        """Called by Django's own handlers; ours calls `answer` and needs no response object."""
        return (await self.answer(request, **kwargs)).as_response(request.method)

    async def answer(self, request: HttpRequest, **kwargs: Any) -> Answer:
        request_id = new_request_id()
        headers = {"X-Request-Id": request_id}
        self.request, self.scope = request, scope_of(request)
        started_at = begun_at(self.scope)
        try:
            answer = await self.respond(request, headers, kwargs)
        except Exception as error:  # noqa: BLE001 - the top of a request: every fault becomes the one error body
            answer = answer_exception(error, request_id)
        answer.headers |= headers
        took_s = time.perf_counter() - started_at
        # Nearly no answer is worth a line, and then it costs nothing more than this.
        if answer.status >= 400 or settings.ACCESS_LOG or 0 < settings.SLOW_REQUEST_MS <= took_s * 1000:
            self._log(request, answer, request_id, took_s)
        return answer

    async def respond(self, request: HttpRequest, headers: dict[str, str], kwargs: dict[str, Any]) -> Answer:
        if request.method == "OPTIONS":
            return Answer(b"", dict(ON_PREFLIGHT), status=204)
        refuse_plain(self.scope)
        await self.admit(request, headers)
        check_host(self.scope)
        action = self.action_for(str(request.method))
        answer = action(**kwargs)
        return await answer if isawaitable(answer) else answer  # type: ignore[no-any-return]

    def _log(self, request: HttpRequest, answer: Answer, request_id: str, took_s: float) -> None:
        log_request(
            Served(
                str(request.method),
                request.path,
                getattr(request, "route", ""),
                answer.status,
                took_s,
                request_id,
                address_of(self.scope),
                self.known_by(),
                answer.code,
            )
        )

    def known_by(self) -> Mapping[str, object]:
        """Who asked, as the log names them."""
        return {}

    async def admit(self, request: HttpRequest, headers: dict[str, str]) -> None:
        """Raise to refuse the request. `headers` are sent with the answer or the refusal."""

    def action_for(self, method: str) -> Callable[..., Any]:
        """HEAD is answered as GET without its body."""
        if method not in ("GET", "HEAD"):
            error = MethodNotAllowed()
            error.headers["Allow"] = METHODS
            raise error
        return getattr(self, self.action_map["get"])  # type: ignore[no-any-return]

    def parameters(self, serializer: type[QuerySerializer]) -> dict[str, Any]:
        query_string: bytes | str = self.scope["query_string"]
        if isinstance(query_string, bytes):
            # Broken UTF-8 becomes U+FFFD, which no parameter accepts.
            query_string = query_string.decode(errors="replace")
        return read_parameters(serializer, query_string)
