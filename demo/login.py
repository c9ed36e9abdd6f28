"""The demo's staff come in by a link: signed, good once and for a quarter of an hour, the newest one only.

Where somebody calls from proves nothing: behind a proxy on the same machine everybody calls from here.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable

from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import record_authentication
from django.conf import settings
from django.contrib.auth import alogout, login
from django.core import signing
from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import async_only_middleware
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.models import Account, User
from core.addresses import is_loopback

from .people import STAFF

DEMO_LINK = "demo_link"
"""How a session says that it began with a link."""
VALID_S = 15 * 60
SALT = "accounts.demo_login"
NEWEST = "demo-login"


def issue_link(user: User) -> str:
    """The path of a new link. Those before it are void."""
    nonce = secrets.token_urlsafe(16)
    if before := cache.get(NEWEST):
        cache.delete(before)
    cache.set_many({NEWEST: _cache_key(nonce), _cache_key(nonce): user.pk}, VALID_S)
    return reverse("demo_login", args=[signing.dumps(nonce, salt=SALT)])


def redeem(token: str) -> User | None:
    """Whom a link lets in: one caller, however many come at once."""
    cache_key = _cache_key_of(token)
    user = None if cache_key is None else _user_behind(cache_key)
    # The row that is deleted decides who was first.
    return user if cache_key is not None and user is not None and cache.delete(cache_key) else None


def is_good(token: str) -> bool:
    cache_key = _cache_key_of(token)
    return cache_key is not None and _user_behind(cache_key) is not None


def _cache_key_of(token: str) -> str | None:
    try:
        return _cache_key(signing.loads(token, salt=SALT, max_age=VALID_S))
    except signing.BadSignature:
        return None


def _cache_key(nonce: str) -> str:
    return f"demo-login-{hashlib.sha256(nonce.encode()).hexdigest()}"


def _user_behind(cache_key: str) -> User | None:
    found = Account.objects.filter(user_id=cache.get(cache_key), is_demo=True, user__is_active=True)
    account = found.select_related("user").first()
    return account.user if account else None


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def demo_login(request: HttpRequest, token: str) -> HttpResponse:
    """A GET only asks, because programs that look at links must not use one up."""
    if not settings.DEMO:
        raise Http404
    if request.method != "POST":
        return _page(request, is_good=is_good(token))
    user = redeem(token)
    if user is None:
        return _page(request, is_good=False)
    login(request, user)
    record_authentication(request, user, DEMO_LINK)
    return redirect("admin:index")


def _page(request: HttpRequest, *, is_good: bool) -> HttpResponse:
    return render(request, "account/demo_login.html", {"is_good": is_good}, status=200 if is_good else 410)


def came_by_demo_link(request: HttpRequest) -> bool:
    """Whoever runs the demo held the printed link in the hand, as a second factor is."""
    records = get_authentication_records(request, request.user)
    return (
        settings.DEMO
        and any(record["method"] == DEMO_LINK for record in records)
        and Account.objects.filter(user__username=request.user.get_username(), is_demo=True).exists()
    )


@async_only_middleware
def DemoLoginsStayOnLoopback(  # noqa: N802 - middleware is named as the classes around it
    get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]],
) -> Callable[[HttpRequest], Awaitable[HttpResponseBase]]:
    """A demo session carried to another address ends there."""

    async def middleware(request: HttpRequest) -> HttpResponseBase:
        if not is_loopback(request):
            user = await request.auser()
            if (
                user.is_authenticated
                and await Account.objects.filter(user_id=user.pk, is_demo=True).aexists()
            ):
                await alogout(request)
        return await get_response(request)

    return middleware


def fresh_link() -> str | None:
    account = Account.objects.filter(is_demo=True, user__username=STAFF).select_related("user").first()
    return issue_link(account.user) if account else None
