"""The one error body, for everything that can go wrong."""

from __future__ import annotations

import logging
import sys
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.db.utils import DatabaseError, InterfaceError, OperationalError
from django.db.utils import InternalError as DatabaseRefusal
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from rest_framework.exceptions import ValidationError

from accounts.api import ON_EVERY_ANSWER, encode, new_request_id
from accounts.exceptions import ApiError, InvalidParameter, NotFound, Overloaded

from .unavailable import unavailable

logger = logging.getLogger(__name__)

# PostgreSQL says so of a standby, and where somebody has switched writing off.
READ_ONLY, STOOD_STILL = "25006", "25P03"


class InternalError(ApiError):
    status_code, code = 500, "internal_error"
    message = "Something failed on our side. Quote the request_id when you write to us."


def answer_error(error: Exception, context: dict[str, Any]) -> HttpResponse:
    """DRF's exception handler: any exception becomes an answer, and only a bug becomes a 500."""
    refusal = as_refusal(error)
    if refusal.status_code == 503:
        unavailable.tell(refusal.code, context["request_id"], error)
    elif refusal.status_code >= 500:
        logger.error("%s: %s", context["request_id"], error, exc_info=error)
    response = HttpResponse(
        error_body(refusal, context["request_id"]),
        status=refusal.status_code,
        content_type="application/json",
    )
    for name, value in refusal.headers.items():
        response.headers[name] = value
    return response


def as_refusal(error: Exception) -> ApiError:
    match error:
        case ApiError():
            return error
        case OperationalError() | InterfaceError():
            return Overloaded("The database does not answer just now. Try again shortly.", retry_after=2)
        case DatabaseRefusal() if getattr(error.__cause__, "sqlstate", "") == STOOD_STILL:
            return Overloaded("This took too long for the database. Try again shortly.", retry_after=1)
        case DatabaseRefusal() if getattr(error.__cause__, "sqlstate", "") == READ_ONLY:
            return Overloaded("The database takes no changes just now. Try again shortly.", retry_after=5)
        case ValidationError() | SuspiciousOperation():
            return InvalidParameter("The query string cannot be read.")
        case _:
            return InternalError()


def error_body(refusal: ApiError, request_id: str) -> bytes:
    details = {
        "code": refusal.code,
        "message": refusal.message,
        "status": refusal.status_code,
        "field": refusal.field,
        "allowed": refusal.allowed,
        "max": refusal.max,
        "request_id": request_id,
    }
    return encode({"error": {name: value for name, value in details.items() if value is not None}})


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _page_or_body(request, InvalidParameter("This request cannot be read."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _page_or_body(request, NotFound())


def server_error(request: HttpRequest) -> HttpResponse:
    # Django does not pass it on, and calls this while it handles it.
    error = sys.exception()
    if isinstance(error, DatabaseError | InterfaceError):
        return _page_or_body(request, as_refusal(error))
    return _page_or_body(request, InternalError())


def _page_or_body(request: HttpRequest, refusal: ApiError) -> HttpResponse:
    """A browser gets a page, everybody else the error body."""
    if "text/html" in request.headers.get("Accept", ""):
        template, status = f"{refusal.status_code}.html", refusal.status_code
        response = render(request, template, {"refusal": refusal}, status=status)
        for name, value in refusal.headers.items():
            response.headers[name] = value
        return response
    request_id = new_request_id()
    body = error_body(refusal, request_id)
    headers = {**ON_EVERY_ANSWER, **refusal.headers, "X-Request-Id": request_id}
    return HttpResponse(body, status=refusal.status_code, content_type="application/json", headers=headers)
