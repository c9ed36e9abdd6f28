"""Who may send more than a page takes: staff who are logged in, where they import files.

It is asked before the body is read, because Django reads all of it before it asks who sends it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest, parse_cookie

from accounts.api import ON_EVERY_ANSWER, new_request_id
from accounts.exceptions import ApiError
from accounts.threads import in_thread

from .errors import error_body
from .server.bodies import MOST_BYTES, MOST_DIGITS, is_import


class StaffOnly(ApiError):
    status_code, code = 413, "too_large"
    message = f"Only staff who are logged in may send more than {MOST_BYTES:,} bytes here."


async def is_refused(scope: dict[str, Any], send: Any) -> bool:
    """True if it was, and the request is answered."""
    if not is_import(scope["path"]) or not may_be_large(scope):
        return False
    if await in_thread(is_staff, values_of(scope, b"cookie")):
        return False
    request_id = new_request_id()
    body = error_body(StaffOnly(max=MOST_BYTES), request_id)
    told = {
        **ON_EVERY_ANSWER,
        "X-Request-Id": request_id,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    }
    headers = [(name.lower().encode(), value.encode()) for name, value in told.items()]
    await send({"type": "http.response.start", "status": StaffOnly.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": body})
    return True


def may_be_large(scope: dict[str, Any]) -> bool:
    length = values_of(scope, b"content-length")
    if length.isdigit() and len(length) <= MOST_DIGITS:
        return int(length) > MOST_BYTES
    return bool(length or values_of(scope, b"transfer-encoding"))


def values_of(scope: dict[str, Any], name: bytes) -> str:
    return b"; ".join(value for sent, value in scope["headers"] if sent == name).decode("latin-1")


def is_staff(cookies: str) -> bool:
    key = parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME)
    if not key:
        return False
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = get_user(request)
    return user.is_active and getattr(user, "is_staff", False)
