"""The figures for Prometheus: with a token at /metrics, or on a port of their own that no proxy forwards."""

import asyncio
import contextlib
import errno
import hmac
import logging

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

METRICS_PATH = "/metrics"
METRICS_ARE_SHUT = (
    "The metrics are shut. Set METRICS_TOKEN and send it as `Authorization: Bearer …`,"
    " or set METRICS_PORT and ask there.\n"
)


def refuse_metrics(authorization: str) -> HttpResponse | None:
    """Where a request comes from is not asked: behind a proxy on this machine everybody comes from here."""
    scheme, _, token = authorization.partition(" ")
    expected = settings.METRICS_TOKEN
    if expected and scheme.lower() == "bearer" and hmac.compare_digest(token.encode(), expected.encode()):
        return None
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if expected:
        headers["WWW-Authenticate"] = "Bearer"
    status = 401 if expected else 403
    return HttpResponse(
        METRICS_ARE_SHUT, status=status, content_type="text/plain; charset=utf-8", headers=headers
    )


logger = logging.getLogger(__name__)
HEAD_WITHIN_S = 5
LONGEST_HEAD = 8 * 1024

# Each process of `serve --workers` takes the next free port.
MOST_PROCESSES = 64


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    refused = refuse_metrics(request.headers.get("Authorization", ""))
    return refused or HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


class MetricsPort:
    """A listener that answers GET /metrics and nothing else."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int | None:
        return self._server.sockets[0].getsockname()[1] if self._server else None

    async def start(self) -> None:
        first, host = settings.METRICS_PORT, settings.METRICS_HOST
        if not first:
            return
        for port in range(first, first + MOST_PROCESSES):
            try:
                self._server = await asyncio.start_server(_serve_metrics, host, port, limit=LONGEST_HEAD)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            logger.info("Metrics of this process are at http://%s:%d/metrics", host, port)
            return
        logger.error("No port from %d on is free for the metrics: they are not served.", first)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


async def _serve_metrics(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        async with asyncio.timeout(HEAD_WITHIN_S):
            head = await reader.readuntil(b"\r\n\r\n")
        writer.write(await _answer_metrics(head.split(b"\r\n", 1)[0]))
        async with asyncio.timeout(HEAD_WITHIN_S):
            await writer.drain()
    writer.close()


async def _answer_metrics(request_line: bytes) -> bytes:
    method, _, rest = request_line.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        status, body = b"405 Method Not Allowed", b""
    elif path != b"/metrics":
        status, body = b"404 Not Found", b"Ask for /metrics.\n"
    else:
        # A thread, so that a long answer holds up no tick.
        status, body = b"200 OK", await asyncio.to_thread(generate_latest, REGISTRY)
    kind = CONTENT_TYPE_LATEST if status.startswith(b"200") else "text/plain; charset=utf-8"
    head = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (status, kind.encode(), len(body)) + (b"" if method == b"HEAD" else body)


metrics_port = MetricsPort()
