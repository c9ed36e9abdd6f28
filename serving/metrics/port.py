"""A port for operators only: /metrics, /livez and /readyz of a process, or of all workers together."""

import asyncio
import contextlib
import errno
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings
from prometheus_client import CONTENT_TYPE_LATEST

from core.deadlines import patient
from core.plain_json import encode

logger = logging.getLogger(__name__)
HEAD_WITHIN_S = patient(5)
LONGEST_HEAD = 8 * 1024

# For several services on one machine. In production a scrape would take one for the other.
MOST_PORTS = 64
UNSERVED = (
    "%s, so metrics and probes are not served. METRICS_HOST has to be an address of this machine, and each"
    " process needs a METRICS_PORT or ENGINE_PORT of its own: correct them, and start it again."
)
HIGHEST_PORT = 65535
Text = Callable[[], Awaitable[bytes]]
Readiness = Callable[[], Awaitable[tuple[int, dict[str, Any]]]]
JSON = "application/json"
PLAIN = "text/plain; charset=utf-8"
REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error"}
REASONS |= {503: "Service Unavailable"}
IMPOLITE = (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)


class MetricsPort:
    """Answers to any host name and without a key, so no proxy may forward it."""

    def __init__(self, text: Text, readiness: Readiness) -> None:
        self._text, self._readiness = text, readiness
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int | None:
        return self._server.sockets[0].getsockname()[1] if self._server else None

    async def start(self, first: int, host: str) -> None:
        """0 means no port. If none is available, the process runs without one."""
        if not first:
            return
        last = first if settings.PRODUCTION else min(first + MOST_PORTS - 1, HIGHEST_PORT)
        for port in range(first, last + 1):
            try:
                self._server = await asyncio.start_server(self._serve, host, port, limit=LONGEST_HEAD)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                logger.error(UNSERVED, f"Port {port} of {host} cannot be opened ({error.strerror or error})")  # noqa: TRY400 - a sentence says it all
                return
            if port != first:
                logger.warning("Port %d is taken, so metrics and probes are at %d.", first, port)
            logger.info("Metrics and probes are at http://%s:%d/metrics, /livez and /readyz", host, port)
            return
        logger.error(UNSERVED, f"Port {first} is taken")

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(*IMPOLITE):
            async with asyncio.timeout(HEAD_WITHIN_S):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(await self._answer(head.split(b"\r\n", 1)[0]))
            async with asyncio.timeout(HEAD_WITHIN_S):
                await writer.drain()
        writer.close()

    async def _answer(self, request_line: bytes) -> bytes:
        method, _, rest = request_line.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1")
        if method not in (b"GET", b"HEAD"):
            status, kind, body = 405, PLAIN, b"GET and HEAD only.\n"
        else:
            status, kind, body = await self._look(path)
        head = (
            f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + (b"" if method == b"HEAD" else body)

    async def _look(self, path: str) -> tuple[int, str, bytes]:
        try:
            if path == "/metrics":
                return 200, CONTENT_TYPE_LATEST, await self._text()
            if path in ("/livez", "/healthz"):
                return 200, JSON, b'{"status":"ok"}'
            if path == "/readyz":
                status, body = await self._readiness()
                return status, JSON, encode(body)
        except Exception:
            logger.exception("What %s asks for could not be collected", path)
            return 500, PLAIN, b"It could not be collected; the log says why.\n"
        return 404, PLAIN, b"Ask for /metrics, /livez or /readyz.\n"
