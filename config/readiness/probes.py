"""/healthz and /readyz, answered from memory: no thread, no database, whatever host name was asked for."""

from __future__ import annotations

from typing import Any

import msgspec

from .monitor import monitor

HEALTHZ, READYZ = "/healthz", "/readyz"
PATHS = frozenset((HEALTHZ, READYZ))


async def answer_probe(scope: dict[str, Any], send: Any) -> None:
    if scope["method"] not in ("GET", "HEAD"):
        status, body = 405, {"status": "GET and HEAD only"}
    elif scope["path"] == HEALTHZ:
        status, body = 200, {"status": "ok"}
    else:
        status, body = readiness()
    encoded = msgspec.json.encode(body)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(encoded))]
    headers.append((b"cache-control", b"no-store"))
    if status == 405:
        headers.append((b"allow", b"GET, HEAD"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else encoded})


def readiness() -> tuple[int, dict[str, Any]]:
    """200 while requests here would succeed."""
    found = monitor.verdict()
    body: dict[str, Any] = {"status": "not ready" if found.reasons else "ready"}
    if found.reasons:
        body["reasons"] = found.reasons
    return (503 if found.reasons else 200), body | {"degraded": found.degraded, "checks": found.checks}
