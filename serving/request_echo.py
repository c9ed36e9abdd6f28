"""A request as the service saw it behind its proxy, for the checks of `doctor`.

Only a holder of the installation's secret can ask, and only the same installation can answer."""

import asyncio
import secrets
from typing import Any, NamedTuple

from django.core import signing

from core.version import VERSION

from .http.connections import descriptor_limit

HTTP_PATH, SOCKET_PATH = "/.well-known/tickwire", "/ws/mirror"
TICKET_HEADER = "x-tickwire-ticket"
FORWARDED_FOR, FORWARDED_PROTO = "x-forwarded-for", "x-forwarded-proto"
STRANGE = "Not of this installation"
VALID_S = 300
SOCKET_S = 180.0


class SeenRequest(NamedTuple):
    version: str
    client: str
    port: int
    scheme: str
    host: str
    forwarded_for: str
    """As received, whether a client or a proxy wrote it; empty if it is missing."""
    forwarded_proto: str
    open_files: int
    """How many the process may have."""


class NotOfThisInstallation(ValueError):
    """It is unsigned, or signed with another SECRET_KEY."""


def make_ticket() -> str:
    return signing.TimestampSigner(salt="tickwire.mirror.ticket").sign(secrets.token_urlsafe(12))


def read_answer(ticket: str, answer: str) -> SeenRequest:
    try:
        asked_with, *seen = signing.loads(answer, salt="tickwire.mirror.answer", max_age=VALID_S)
        if asked_with != ticket:
            raise NotOfThisInstallation(answer)
        return SeenRequest(*seen)
    except (signing.BadSignature, TypeError, ValueError) as error:
        raise NotOfThisInstallation(answer) from error


async def answer_echo(scope: dict[str, Any], send: Any) -> None:
    answer = _answer(scope)
    body = (answer or STRANGE).encode()
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    headers.append((b"cache-control", b"no-store"))
    await send({"type": "http.response.start", "status": 200 if answer else 403, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


async def echo_socket(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Sends at once what it saw, then again after the first message or a silence."""
    await receive()
    answer = _answer(scope)
    if answer is None:
        await send({"type": "websocket.close"})
        return
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": answer})
    try:
        async with asyncio.timeout(SOCKET_S):
            heard = await receive()
    except TimeoutError:
        heard = {"type": "websocket.receive"}
    if heard["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": answer})
        await send({"type": "websocket.close"})


def _answer(scope: dict[str, Any]) -> str | None:
    """None without a ticket of this installation."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1")
        headers[key] = (
            f"{headers[key]}, {value.decode('latin-1')}" if key in headers else value.decode("latin-1")
        )
    ticket = headers.get(TICKET_HEADER, "")
    try:
        signing.TimestampSigner(salt="tickwire.mirror.ticket").unsign(ticket, max_age=VALID_S)
    except signing.BadSignature:
        return None
    client, port = scope.get("client") or ("", 0)
    seen = SeenRequest(
        VERSION,
        client,
        port,
        scope["scheme"],
        headers.get("host", ""),
        headers.get(FORWARDED_FOR, ""),
        headers.get(FORWARDED_PROTO, ""),
        descriptor_limit(),
    )
    return signing.dumps([ticket, *seen], salt="tickwire.mirror.answer")
