"""The admin site: behind allauth's login and a second factor, with a content policy of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from allauth.account.decorators import secure_admin_login
from allauth.account.utils import get_next_redirect_url
from csp.constants import SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.decorators import csp_replace
from django.contrib.admin import autodiscover
from django.core.checks import CheckMessage
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, reverse
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.utils.text import capfirst

from accounts.login.factors import factor_standing

# What was typed into a form whose session ended before it was sent, so that it can be shown once more.
# Buttons, marks, the counts of a table of forms, and what no page shows.
NOT_TYPED = re.compile(
    r"_.*|csrfmiddlewaretoken|act|action|answered|index|item|next|seen|select_across"
    r"|initial-.*|.*_FORMS|.*-__prefix__-.*|.*password.*",
    re.DOTALL,
)


class Typed(NamedTuple):
    name: str
    text: str


def typed_into(request: HttpRequest) -> list[Typed]:
    return [
        Typed(capfirst(re.sub(r"_[01]$|[-_]", " ", name).strip()), text)
        for name, texts in request.POST.lists()
        for text in map(str, texts)
        if not NOT_TYPED.fullmatch(name) and text.strip()
    ]


def is_page_of_a_visitor(request: HttpRequest) -> bool:
    """A form that a browser sends as a page, without a login."""
    is_page = request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    return request.method == "POST" and is_page and not request.user.is_authenticated


if TYPE_CHECKING:
    from django.contrib.admin import AdminSite as UnfoldAdminSite
else:
    from unfold.sites import UnfoldAdminSite

View = TypeVar("View", bound=Callable[..., Any])

# unfold's pages are driven by Alpine, which evaluates the expressions in their attributes, and it sets
# a few style attributes. Inline scripts and style elements stay forbidden, and so does every other host.
POLICY = {"script-src": [SELF, UNSAFE_EVAL], "style-src-attr": [UNSAFE_INLINE]}


class BackOffice(UnfoldAdminSite):
    index_title = "Overview"

    def check(self, app_configs: Any) -> list[CheckMessage]:
        """`check` may run before any address is resolved, and so before the pages are registered."""
        autodiscover()
        return super().check(app_configs)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Without Django's "view on site", which no page here links to: to compare its pattern with 30 KB of
        slashes takes seconds, in which the process serves no other request."""
        return [url for url in super().get_urls() if getattr(url, "name", "") != "view_on_site"]

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        inner = super().admin_view(view, cacheable)

        @wraps(inner)
        def answer(request: HttpRequest, *args: Any, **options: Any) -> Any:
            if is_page_of_a_visitor(request) and (typed := typed_into(request)):
                return self._give_back(request, typed)
            try:
                return inner(request, *args, **options)
            except PermissionDenied:
                return self._refuse(request, "admin/forbidden.html", "This page is not open to you")

        return cast(View, csp_replace(POLICY)(answer))

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and factor_standing(request) == "shown"

    @method_decorator(csp_replace(POLICY))
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """allauth asks for the password and the second factor; this site has no login form of its own."""
        try:
            answer: HttpResponse = secure_admin_login(self._let_in)(request, extra_context)
        except PermissionDenied:
            return self._refuse(request, "admin/refused.html", "For staff only")
        return answer

    def _let_in(self, request: HttpRequest, extra_context: dict[str, Any] | None) -> HttpResponse:
        """Staff who are logged in."""
        if factor_standing(request) == "shown":
            return super().login(request, extra_context)
        return self._refuse(request, "admin/second_factor.html", "A second factor, please")

    def _give_back(self, request: HttpRequest, typed: list[Typed]) -> HttpResponse:
        login_url = f"{reverse('admin:login')}?{urlencode({'next': request.get_full_path()})}"
        context = {**self.each_context(request), "title": "Your session has ended"}
        context |= {"typed": typed, "login_url": login_url}
        return TemplateResponse(request, "admin/session_ended.html", context, status=403)

    def _refuse(self, request: HttpRequest, template: str, title: str) -> HttpResponse:
        asked_for = get_next_redirect_url(request) or reverse("admin:index")
        context = {
            **self.each_context(request),
            "title": title,
            "standing": factor_standing(request),
            "show_url": f"{reverse('mfa_reauthenticate')}?{urlencode({'next': asked_for})}",
        }
        return TemplateResponse(request, template, context, status=403)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        # The colours come from a style sheet: unfold would write them into a style element.
        return {**super().each_context(request), "colors": None}
