"""The demo's staff log in with a link that works once, for a quarter of an hour, until a newer one is made.

The caller's address proves nothing: behind a proxy on the same machine, every request is local.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable

from allauth.account.internal.flows.login import record_authentication
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import alogout, login
from django.contrib.auth.backends import BaseBackend
from django.core.cache import cache
from django.core.exceptions import MiddlewareNotUsed
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import async_only_middleware
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.login import DEMO_LINK
from accounts.models import Account, User
from core.addresses import is_loopback, scope_of

from .people import STAFF

VALID_S = 15 * 60
NEWEST = "demo-login"


def fresh_link() -> str | None:
    staff = User.objects.filter(username=STAFF, account__is_demo=True).first()
    return issue_link(staff) if staff else None


def issue_link(user: User) -> str:
    """The path of a new link, which ends the one before it."""
    token = secrets.token_urlsafe(32)
    if before := cache.get(NEWEST):
        cache.delete(before)
    cache.set_many({NEWEST: _cache_key(token), _cache_key(token): user.pk}, VALID_S)
    return reverse("demo_login", args=[token])


def user_of(token: str) -> User | None:
    """The user whom a link would let in now."""
    people = User.objects.filter(is_active=True, account__is_demo=True)
    return people.filter(pk=cache.get(_cache_key(token))).first()


def redeem(token: str) -> User | None:
    user = user_of(token)
    # Of simultaneous requests, only one deletes the row.
    return user if user is not None and cache.delete(_cache_key(token)) else None


def _cache_key(token: str) -> str:
    return f"demo-login-{hashlib.sha256(token.encode()).hexdigest()}"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def demo_login(request: HttpRequest, token: str) -> HttpResponse:
    """A GET only asks, because programs that look at links must not use one up."""
    if not settings.DEMO:
        raise Http404
    user = redeem(token) if request.method == "POST" else user_of(token)
    if user is None or request.method != "POST":
        return render(request, "demo/login.html", {"is_good": user is not None}, status=200 if user else 410)
    login(request, user, backend=f"{__name__}.{DemoLinkBackend.__name__}")
    record_authentication(request, user, DEMO_LINK)
    UserSession.objects.create_from_request(request)
    return redirect("admin:index")


class DemoLinkBackend(BaseBackend):
    """A session that began with a link ends when the demo is switched off."""

    def get_user(self, user_id: int) -> User | None:
        return User.objects.filter(pk=user_id, is_active=True).first() if settings.DEMO else None


@async_only_middleware
def DemoLoginsStayOnLoopback(  # noqa: N802 - middleware is named as the classes around it
    get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]],
) -> Callable[[HttpRequest], Awaitable[HttpResponseBase]]:
    """A demo session that is carried to another address ends there."""
    if not settings.DEMO:
        raise MiddlewareNotUsed

    async def middleware(request: HttpRequest) -> HttpResponseBase:
        if not is_loopback(scope_of(request)):
            user, people = await request.auser(), Account.objects.filter(is_demo=True)
            if user.is_authenticated and await people.filter(user_id=user.pk).aexists():
                await alogout(request)
        return await get_response(request)

    return middleware
