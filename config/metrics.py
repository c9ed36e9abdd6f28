"""The figures for Prometheus: with a token at /metrics, or on a port of their own that no proxy forwards."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from market.metrics import MarketMetrics
from market.streams.metrics import StreamMetrics
from market.streams.service import order_flow, prices
from signals_feed.stream import signals

from . import metrics_token
from .readiness.metrics import ReadinessMetrics

for collector in (MarketMetrics(), StreamMetrics(prices, order_flow, signals), ReadinessMetrics()):
    REGISTRY.register(collector)

logger = logging.getLogger(__name__)

HEAD_WITHIN_S = 5
LONGEST_HEAD = 8 * 1024
# Each process of `serve --workers` takes the next free port.
MOST_PROCESSES = 64


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    refused = metrics_token.refusal(request.headers.get("Authorization", ""))
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
                self._server = await asyncio.start_server(_serve, host, port, limit=LONGEST_HEAD)
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


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        async with asyncio.timeout(HEAD_WITHIN_S):
            head = await reader.readuntil(b"\r\n\r\n")
        writer.write(await _answer(head.split(b"\r\n", 1)[0]))
        async with asyncio.timeout(HEAD_WITHIN_S):
            await writer.drain()
    writer.close()


async def _answer(request_line: bytes) -> bytes:
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
