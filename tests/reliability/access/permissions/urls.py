"""Every URL there is, by the URLconf; and a page asked as the server would ask it, without the middleware
around: the matrix has thousands of cells. Who gets past that, and what pages look like, other tests show."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.messages.storage.fallback import FallbackStorage
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.test import RequestFactory
from django.urls import URLPattern, get_resolver, resolve

from accounts.models import User


class Url(NamedTuple):
    pattern: str
    name: str
    view: Any


def every_url() -> list[Url]:
    return list(_walk(get_resolver(), ""))


def _walk(resolver: Any, before: str) -> Iterator[Url]:
    for each in resolver.url_patterns:
        pattern = f"{before}{each.pattern}"
        if isinstance(each, URLPattern):
            yield Url(pattern, each.name or "", each.callback)
        else:
            yield from _walk(each, pattern)


def admin_urls() -> list[Url]:
    return [url for url in every_url() if url.pattern.startswith("admin/")]


def other_urls() -> list[Url]:
    return [url for url in every_url() if not url.pattern.startswith("admin/")]


SessionStore = import_module(settings.SESSION_ENGINE).SessionStore


def ask(method: str, address: str, user: User | AnonymousUser, fields: dict[str, Any] | None = None) -> Any:
    request: Any = getattr(RequestFactory(), method.lower())(address, fields or {})
    # As after login with a second factor; powers are read again for each request.
    request.user = User.objects.get(pk=user.pk) if isinstance(user, User) else user
    request.second_factor = "shown"
    request._dont_enforce_csrf_checks = True
    request.session = SessionStore()
    request._messages = FallbackStorage(request)
    view, args, kwargs = resolve(request.path_info)
    request.resolver_match = resolve(request.path_info)
    try:
        return view(request, *args, **kwargs)
    except PermissionDenied:
        return HttpResponse(status=403)
    except Http404:
        return HttpResponse(status=404)
