"""Who may send more than a page takes: staff who are logged in, where they import files.

It is asked before the body is read, because Django reads all of it before it asks who sends it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest, parse_cookie

from accounts.exceptions import ApiError

from .server.bodies import MOST_BYTES, MOST_DIGITS, is_import


class StaffOnly(ApiError):
    status_code, code = 413, "too_large"
    message = f"Only staff who are logged in may send more than {MOST_BYTES:,} bytes here."

    def __init__(self) -> None:
        super().__init__(max=MOST_BYTES)


def is_for_staff(scope: dict[str, Any]) -> bool:
    return is_import(scope["path"]) and may_be_large(scope)


def may_be_large(scope: dict[str, Any]) -> bool:
    length = values_of(scope, b"content-length")
    if length.isdigit() and len(length) <= MOST_DIGITS:
        return int(length) > MOST_BYTES
    return bool(length or values_of(scope, b"transfer-encoding"))


def values_of(scope: dict[str, Any], name: bytes) -> str:
    return b"; ".join(value for sent, value in scope["headers"] if sent == name).decode("latin-1")


def is_from_staff(scope: dict[str, Any]) -> bool:
    """Asks the database."""
    key = parse_cookie(values_of(scope, b"cookie")).get(settings.SESSION_COOKIE_NAME)
    if not key:
        return False
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = get_user(request)
    return user.is_active and getattr(user, "is_staff", False)
