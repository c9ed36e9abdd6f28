"""The token that opens /metrics."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.http import HttpResponse

PATH = "/metrics"
REFUSED = (
    "The metrics are shut. Set METRICS_TOKEN and send it as `Authorization: Bearer …`,"
    " or set METRICS_PORT and ask there.\n"
)


def refusal(authorization: str) -> HttpResponse | None:
    """Where a request comes from is not asked: behind a proxy on this machine everybody comes from here."""
    if has_token(authorization):
        return None
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if settings.METRICS_TOKEN:
        headers["WWW-Authenticate"] = "Bearer"
    status = 401 if settings.METRICS_TOKEN else 403
    return HttpResponse(REFUSED, status=status, content_type="text/plain; charset=utf-8", headers=headers)


def has_token(authorization: str) -> bool:
    scheme, _, token = authorization.partition(" ")
    expected = settings.METRICS_TOKEN
    return bool(
        expected and scheme.lower() == "bearer" and hmac.compare_digest(token.encode(), expected.encode())
    )
