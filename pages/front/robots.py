"""/robots.txt: documents may be read by search engines, forms and data need not."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

KEPT_OUT = ("/accounts/", "/admin/", "/api/", "/demo-login/", "/settings/", "/terminal")


@cache_control(max_age=86_400)
@require_safe
def robots(request: HttpRequest) -> HttpResponse:
    lines = ["User-agent: *", *(f"Disallow: {path}" for path in KEPT_OUT)]
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; charset=utf-8")
