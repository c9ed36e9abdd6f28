"""The figures for Prometheus: with a token at /metrics, or on a port of their own that no proxy forwards."""

import hmac

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from .metrics.port import MetricsPort
from .metrics.worker_link import SupervisorSilent, process_metrics, worker_link
from .readiness import readiness

METRICS_PATH = "/metrics"
METRICS_ARE_SHUT = (
    "The metrics are closed. Set METRICS_TOKEN and send it as `Authorization: Bearer …`,"
    " or set METRICS_PORT and ask there.\n"
)
SUPERVISOR_IS_SILENT = "The supervisor cannot report its workers' figures. The log says why; try again.\n"
PLAIN = "text/plain; charset=utf-8"


def refuse_metrics(authorization: str) -> HttpResponse | None:
    """The client's address does not count: behind a proxy on this machine, every request is local."""
    scheme, _, token = authorization.partition(" ")
    expected = settings.METRICS_TOKEN
    if expected and scheme.lower() == "bearer" and hmac.compare_digest(token.encode(), expected.encode()):
        return None
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if expected:
        headers["WWW-Authenticate"] = "Bearer"
    status = 401 if expected else 403
    return HttpResponse(METRICS_ARE_SHUT, status=status, content_type=PLAIN, headers=headers)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    refused = refuse_metrics(request.headers.get("Authorization", ""))
    if refused is not None:
        return refused
    try:
        text = worker_link.totals_from_thread() if worker_link.is_there else process_metrics.text()
    except SupervisorSilent:
        # The figures of one worker would look like those of all.
        return HttpResponse(SUPERVISOR_IS_SILENT, status=503, content_type=PLAIN)
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


async def _readiness() -> tuple[int, dict[str, object]]:
    return readiness()


# In a thread, so that a long answer holds up no tick.
metrics_port = MetricsPort(sync_to_async(process_metrics.text, thread_sensitive=False), _readiness)


async def start() -> None:
    """Of several workers the supervisor has the port."""
    if worker_link.is_there:
        await worker_link.start(readiness)
    else:
        await metrics_port.start(settings.METRICS_PORT, settings.METRICS_HOST)
