"""The first page: what the service is, for those who do not know it yet."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from .terminal import ComingPast, terminal


@never_cache
@require_safe
def start(request: HttpRequest, coming_past: ComingPast = lambda: None) -> HttpResponse:
    """In the demo, and for those who are logged in, the terminal itself."""
    if settings.DEMO or request.user.is_authenticated:
        return terminal(request, coming_past)
    return render(request, "start.html")
