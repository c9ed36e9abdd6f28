"""Pages only: /api has no middleware, its viewset base does this work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from django.contrib.auth import alogout
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import async_only_middleware

from .loopback import is_loopback
from .models import Account


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
