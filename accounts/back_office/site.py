"""The admin site: behind allauth's login, and the only place with a looser content security policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from allauth.account.decorators import secure_admin_login
from csp.constants import SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.decorators import csp_replace
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

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

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        return cast(View, csp_replace(POLICY)(super().admin_view(view, cacheable)))

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        view = csp_replace(POLICY)(lambda request: self._login(request, extra_context))
        return cast(HttpResponse, view(request))

    def _login(self, request: HttpRequest, extra_context: dict[str, Any] | None) -> HttpResponse:
        """allauth asks for the password and the second factor; this site has no login form of its own."""
        try:
            answer: HttpResponse = secure_admin_login(super().login)(request, extra_context)
        except PermissionDenied:
            context = {**self.each_context(request), "title": "For staff only"}
            return TemplateResponse(request, "admin/refused.html", context, status=403)
        return answer

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        # The colours come from a style sheet: unfold would write them into a style element.
        return {**super().each_context(request), "colors": None}
