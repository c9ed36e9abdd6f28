"""How far the demo's past is made, for the page that waits for it."""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from core.plain_json import encode

from .past import past_progress


@never_cache
@require_safe
def demo_past(request: HttpRequest) -> HttpResponse:
    if not settings.DEMO:
        raise Http404
    return HttpResponse(encode(shown_past()), content_type="application/json")


def shown_past() -> dict[str, Any] | None:
    """What the terminal shows of it; None where there is nothing to wait for."""
    past = past_progress() if settings.DEMO else None
    return past and {"text": past.text, "unmade": past.unmade, "url": reverse("demo_past")}
