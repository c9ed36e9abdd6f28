"""Guessing passwords: 5 failures lock an address and an account together, 100 an hour the account's password.
A device on which somebody logged in before, a passkey and a mailed link still open it."""

from __future__ import annotations

import secrets
from typing import Any

from allauth.account.internal.userkit import filter_users_by_email, get_user_by_username
from allauth.core.internal import ratelimit
from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest, HttpResponseBase

from .addresses import network_of
from .models import User

APP = "allauth.account"
# By these names stand the limits in the settings.
PAIR, ACCOUNT = "login_failed", "login_failed_of_account"
COOKIE, KNOWN_FOR_S = "known_device", 180 * 86_400


def account_of(credentials: dict[str, Any]) -> str:
    """The same for an account's name and its addresses; names that nobody has are counted alike."""
    login = str(credentials.get("email") or credentials.get("username") or "").strip().lower()
    # Both are asked for in any case, or the time would tell whose name it is.
    named: User | None = get_user_by_username(login)
    mailed = next(iter(filter_users_by_email(login, prefer_verified=True, for_login=True)), None)
    found = named or mailed
    return f"name {login}" if found is None else f"user {found.pk}"


def device_of(request: HttpRequest, account: str) -> str | None:
    """By a cookie that it got when this account was logged in to on it."""
    try:
        text = _signer().unsign(request.COOKIES.get(COOKIE, ""), max_age=KNOWN_FOR_S)
    except BadSignature:
        return None
    owner, _, name = text.partition(" ")
    return name if account == f"user {owner}" else None


def admit(request: HttpRequest, credentials: dict[str, Any]) -> list[Any]:
    """What was counted of this attempt, to be rolled back if it succeeds; nothing: it must not be made."""
    account = account_of(credentials)
    device = device_of(request, account)
    if device is not None:
        used = _consume(request, PAIR, f"device {device} {account}")
        return [used] if used else []
    # The pair first: who is locked out already uses up nothing of the account's.
    used = _consume(request, PAIR, f"{network_of(request.META.get('REMOTE_ADDR') or '')} {account}")
    of_account = _consume(request, ACCOUNT, account) if used else None
    return [used, of_account] if of_account else []


def forget(request: HttpRequest, credentials: dict[str, Any]) -> None:
    """After a new password was set by a mailed link."""
    account = account_of(credentials)
    pair = f"{network_of(request.META.get('REMOTE_ADDR') or '')} {account}"
    for action, key in ((PAIR, pair), (ACCOUNT, account)):
        ratelimit.clear(request=request, app=APP, action=action, key=key)


def remember(response: HttpResponseBase, user: User) -> None:
    response.set_cookie(
        COOKIE,
        _signer().sign(f"{user.pk} {secrets.token_urlsafe(16)}"),
        max_age=KNOWN_FOR_S,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _consume(request: HttpRequest, action: str, key: str) -> Any:
    return ratelimit.consume(request=request, app=APP, action=action, key=key)


def _signer() -> TimestampSigner:
    return TimestampSigner(salt="accounts.known_device")
