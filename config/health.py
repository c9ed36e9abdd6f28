"""For those who run it: is it alive, may it serve."""

from __future__ import annotations

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import REGISTRY

from accounts.events import feed
from market.metrics import MarketMetrics
from market.streams.metrics import StreamMetrics
from market.streams.service import order_flow, prices
from signals_feed.stream import signals

from .service import service

REGISTRY.register(MarketMetrics())
REGISTRY.register(StreamMetrics(prices, order_flow, signals))


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the process serves. Asks nobody else."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 while requests would succeed: the database answers and control events are read."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        database = True
    except DatabaseError:
        database = False
    checks = {"service": service.is_ready, "database": database, "control_events": feed.is_current}
    ready = all(checks.values())
    return JsonResponse(
        {"status": "ready" if ready else "not ready", "checks": checks}, status=200 if ready else 503
    )
