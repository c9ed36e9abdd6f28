"""What is answered instead of a page when there is no thread to make it: neither Django nor the database
is asked, because these answers are for moments in which both have too much to do."""

from functools import cache
from typing import Any

from csp.utils import build_policy
from django.conf import settings
from django.http import HttpResponse
from django.template.loader import render_to_string

from core.contract.answers import ON_EVERY_ANSWER, new_request_id
from core.contract.errors import ApiError, error_body

WITH_PAGE = (400, 503)


def refuse_page(scope: dict[str, Any], refusal: ApiError) -> HttpResponse:
    """A browser gets a page where there is one, everybody else the error body."""
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept")
    if b"text/html" in accepted and refusal.status_code in WITH_PAGE:
        response = HttpResponse(_page(refusal.status_code), status=refusal.status_code)
        response["Content-Security-Policy"] = build_policy()
        response["X-Frame-Options"] = settings.X_FRAME_OPTIONS
        response["Referrer-Policy"] = settings.SECURE_REFERRER_POLICY
        response["Cache-Control"] = "no-store"
        response["X-Content-Type-Options"] = "nosniff"
    else:
        request_id = new_request_id()
        response = HttpResponse(
            error_body(refusal, request_id),
            status=refusal.status_code,
            content_type="application/json",
            headers={**ON_EVERY_ANSWER, "X-Request-Id": request_id},
        )
    for name, value in refusal.headers.items():
        response[name] = value
    return response


@cache
def _page(status: int) -> bytes:
    return render_to_string(f"{status}.html").encode()
