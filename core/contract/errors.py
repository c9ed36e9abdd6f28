"""The refusals of the API, and how any fault becomes the one error body."""

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, cast

import msgspec
from django.core.exceptions import SuspiciousOperation
from django.db.utils import DatabaseError, InterfaceError, OperationalError
from django.db.utils import InternalError as DatabaseRefusal
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from msgspec import UNSET, Meta, UnsetType
from rest_framework.exceptions import APIException, ValidationError

from core.fault_log import unavailable, unexpected
from core.plain_json import encode

from .answers import ID_HEADER, Answer

# Ids by which a person can name a request to us.
# 256 is a multiple of 32, so every letter is as likely as any other.
LETTERS = b"abcdefghijklmnopqrstuvwxyz234567" * 8
LENGTH = 16
MADE_AT_ONCE = 256
_made: list[bytes] = []
# Otherwise a fork would issue the same ones.
os.register_at_fork(after_in_child=_made.clear)


def new_request_id() -> str:
    return new_request_id_bytes().decode()


def new_request_id_bytes() -> bytes:
    # Also safe in threads: a list gives each of its items to one of them.
    while True:
        try:
            return _made.pop()
        except IndexError:
            letters = os.urandom(LENGTH * MADE_AT_ONCE).translate(LETTERS)
            _made.extend([b"req_" + letters[at : at + LENGTH] for at in range(0, len(letters), LENGTH)])


CODES = (
    "missing_api_key",
    "invalid_api_key",
    "https_required",
    "not_allowed",
    "symbol_not_found",
    "not_found",
    "method_not_allowed",
    "not_acceptable",
    "invalid_parameter",
    "invalid_timeframe",
    "parameter_out_of_range",
    "invalid_cursor",
    "range_not_satisfiable",
    "rate_limit_exceeded",
    "ai_quota_exceeded",
    "model_unavailable",
    "quote_unavailable",
    "ticks_unavailable",
    "overloaded",
    "internal_error",
)


class Refusal(msgspec.Struct, kw_only=True):
    code: Annotated[
        str,
        Meta(
            description="Stable, and meant for programs. Known values, to which more may be added: "
            f"{', '.join(CODES)}."
        ),
    ]
    message: Annotated[str, Meta(description="Meant for people; it may change.")]
    status: Annotated[int, Meta(ge=400, le=599, description="The HTTP status, repeated.")]
    field: Annotated[str | UnsetType, Meta(description="The parameter that was refused.")] = UNSET
    allowed: Annotated[Sequence[str] | UnsetType, Meta(description="The values that are allowed.")] = UNSET
    max: Annotated[int | UnsetType, Meta(description="The largest number that is allowed.")] = UNSET
    request_id: Annotated[str, Meta(description="The X-Request-Id header, repeated.")]


class ErrorBody(msgspec.Struct):
    """The body of every refusal and fault."""

    component: ClassVar[str] = "Error"

    error: Annotated[Refusal, Meta(description="Why the request was not answered.")]


class ApiError(APIException):
    """A refusal with a stable code."""

    status_code = 400
    code = "invalid_parameter"
    message = ""

    def __init__(
        self,
        message: str = "",
        *,
        field: str | UnsetType = UNSET,
        allowed: Sequence[str] | UnsetType = UNSET,
        max: int | UnsetType = UNSET,  # noqa: A002 - the name on the wire
    ) -> None:
        self.message = message or self.message
        self.field, self.allowed, self.max = field, allowed, max
        self.headers: dict[str, str] = {}
        super().__init__(self.message, self.code)


class MissingApiKey(ApiError):
    status_code, code = 401, "missing_api_key"
    message = "Send your API key in the X-API-Key header."
    IN_ANOTHER = "Send your API key in the X-API-Key header. The Authorization header is not read."


class InvalidApiKey(ApiError):
    status_code, code = 401, "invalid_api_key"
    message = "This API key is not valid. Check it for typos, or issue a new one in the settings panel."


class HttpsRequired(ApiError):
    status_code, code = 403, "https_required"
    message = (
        "This key was sent without TLS and may have been read. Use https:// or wss://, and issue a new key."
    )


class NotAllowed(ApiError):
    status_code, code = 403, "not_allowed"


class SymbolNotFound(ApiError):
    status_code, code = 404, "symbol_not_found"


class NotFound(ApiError):
    status_code, code = 404, "not_found"
    message = "There is nothing at this path. GET /openapi.json lists all paths."
    WITH_SLASH = "There is nothing at this path. Symbols are written without a slash: {symbol}."


class MethodNotAllowed(ApiError):
    status_code, code = 405, "method_not_allowed"

    def __init__(self, allowed: Sequence[str]) -> None:
        *others, last = allowed
        named = f"{', '.join(others)} and {last}" if others else last
        super().__init__(f"This path answers {named}.")
        self.headers["Allow"] = ", ".join(allowed)


class NotAcceptable(ApiError):
    status_code, code = 406, "not_acceptable"


class InvalidParameter(ApiError):
    status_code, code = 400, "invalid_parameter"


class UnknownHost(InvalidParameter):
    message = "The Host header does not name this service."

    def __init__(self) -> None:
        super().__init__(field="Host")


class InvalidTimeframe(InvalidParameter):
    code = "invalid_timeframe"


class ParameterOutOfRange(InvalidParameter):
    code = "parameter_out_of_range"


class InvalidCursor(InvalidParameter):
    code = "invalid_cursor"
    message = (
        "This cursor does not belong to these parameters. Send `next` unchanged, to the same path and with "
        "the parameters of the request that returned it. Only parameters that select no items may differ: "
        "limit, expand and the header Accept, where the path supports them."
    )


class RangeNotSatisfiable(ApiError):
    status_code, code = 416, "range_not_satisfiable"

    def __init__(self, size: int) -> None:
        super().__init__(
            f"This file has {size} bytes, so that range is empty. `Range: bytes=0-` requests all of it."
        )
        self.headers["Content-Range"] = f"bytes */{size}"


class RetryLater(ApiError):
    """A refusal that waiting cures; `retry_after` is in whole seconds."""

    def __init__(self, message: str = "", *, retry_after: int) -> None:
        super().__init__(message)
        self.headers["Retry-After"] = str(max(1, retry_after))


class RateLimitExceeded(RetryLater):
    status_code, code = 429, "rate_limit_exceeded"


class AiQuotaExceeded(RetryLater):
    status_code, code = 429, "ai_quota_exceeded"


class QuoteUnavailable(RetryLater):
    status_code, code = 503, "quote_unavailable"


class TicksUnavailable(RetryLater):
    status_code, code = 503, "ticks_unavailable"
    message = (
        "The ticks of this instrument are not on this server at the moment, so none are shown rather than "
        "too few. Try again shortly."
    )


class ModelUnavailable(RetryLater):
    status_code, code = 503, "model_unavailable"


class Overloaded(RetryLater):
    status_code, code = 503, "overloaded"
    message = "The service is busy. Try again shortly."


class InternalError(ApiError):
    status_code, code = 500, "internal_error"
    message = "Something failed on our side. Quote the request_id if you report it."


logger = logging.getLogger(__name__)

# The SQLSTATE of a standby or a database that is read-only, and of a transaction that was idle too long or
# waited too long for the lock of another.
READ_ONLY, TOOK_TOO_LONG = "25006", ("25P03", "55P03")


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Answer:
    """DRF calls it for a failed request."""
    view = context["view"]
    answer = answer_exception(error, view.headers[ID_HEADER])
    if answer.status == 401:
        answer.headers["WWW-Authenticate"] = view.get_authenticate_header(context["request"])
    return answer


def answer_exception(error: Exception, request_id: str) -> Answer:
    """Any exception becomes an answer, and only a bug becomes a 500."""
    refusal = as_refusal(error)
    if refusal.status_code == 503:
        unavailable.tell(refusal.code, request_id, error)
    elif refusal.status_code >= 500:
        left_out = unexpected.left_out(error)
        if left_out is not None:
            fields = {"request_id": request_id, "left_out": left_out}
            logger.error("%s: %s", request_id, error, exc_info=error, extra=fields)
    return refusal_answer(refusal, request_id)


def refusal_answer(refusal: ApiError, request_id: str) -> Answer:
    headers = {**refusal.headers, ID_HEADER: request_id}
    return Answer(refusal_body(refusal, request_id), headers, refusal.status_code, refusal.code)


def as_refusal(error: Exception) -> ApiError:
    match error:
        case ApiError():
            return error
        case DatabaseError() if getattr(error.__cause__, "sqlstate", "") in TOOK_TOO_LONG:
            return Overloaded("This took too long for the database. Try again shortly.", retry_after=1)
        case OperationalError() | InterfaceError():
            return Overloaded(
                "The database is not responding at the moment. Try again shortly.", retry_after=2
            )
        case DatabaseRefusal() if getattr(error.__cause__, "sqlstate", "") == READ_ONLY:
            return Overloaded(
                "The database accepts no changes at the moment. Try again shortly.", retry_after=5
            )
        case ValidationError() | SuspiciousOperation():
            return InvalidParameter("The query string cannot be read.")
        case _:
            return InternalError()


def refusal_body(refusal: ApiError, request_id: str) -> bytes:
    details = Refusal(
        code=refusal.code,
        message=refusal.message,
        status=refusal.status_code,
        field=refusal.field,
        allowed=refusal.allowed,
        max=refusal.max,
        request_id=request_id,
    )
    return encode(ErrorBody(details))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return page_or_body(request, InvalidParameter("This request cannot be read."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return page_or_body(request, NotFound())


def server_error(request: HttpRequest) -> HttpResponse:
    # Django calls this while it handles the exception, which it does not pass on.
    error = sys.exception()
    if isinstance(error, DatabaseError | InterfaceError | Overloaded):
        return page_or_body(request, as_refusal(error))
    return page_or_body(request, InternalError())


def page_or_body(request: HttpRequest, refusal: ApiError) -> HttpResponse:
    """A browser gets a page, other clients the error body."""
    if "text/html" in request.headers.get("Accept", ""):
        template, status = f"{refusal.status_code}.html", refusal.status_code
        response = render(request, template, {"refusal": refusal}, status=status)
        for name, value in refusal.headers.items():
            response.headers[name] = value
        return response
    return refusal_response(refusal)


def refusal_response(refusal: ApiError) -> HttpResponse:
    """The error body, with a new request id."""
    answer = refusal_answer(refusal, new_request_id())
    return cast(HttpResponse, answer.as_response("GET", {}))
