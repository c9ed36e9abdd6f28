"""Streams through the proxy: whether it opens them, passes each frame on at once, and bears silence."""

import asyncio
import time
from collections.abc import AsyncIterator
from urllib.parse import SplitResult

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from serving.mirror import SOCKET_PATH, TICKET_HEADER, NotOfThisInstallation, make_ticket, read_answer

from .diagnosis import Diagnosis, fail, ok
from .proxy_headers import Asking, is_direct, judge_client
from .public_address import PATIENCE_S

ABOUT = "streams"
PROMPT_S = 5.0
UPGRADE = (
    "Let the proxy speak HTTP/1.1 and pass on upgrades (nginx: proxy_http_version 1.1, "
    "proxy_set_header Upgrade $http_upgrade, proxy_set_header Connection upgrade)."
)
UNBUFFERED = "Let the proxy pass on each frame as it comes (nginx: proxy_buffering off)."
LONGER = (
    "Let the proxy wait for a minute or longer, for streams say something every 10 seconds (nginx: "
    "proxy_read_timeout and proxy_send_timeout; HAProxy: timeout tunnel)."
)


def check_socket(url: SplitResult, silence_s: float) -> list[Diagnosis]:
    # The blocking client reads and writes in two threads, which under TLS now and then loses a handshake.
    return asyncio.run(_all(_check(url, silence_s)))


async def _all(found: AsyncIterator[Diagnosis]) -> list[Diagnosis]:
    return [each async for each in found]


async def _check(url: SplitResult, silence_s: float) -> AsyncIterator[Diagnosis]:
    ticket = make_ticket()
    address = f"{url.geturl().rstrip('/').replace('http', 'ws', 1)}{SOCKET_PATH}"
    try:
        async with connect(
            address,
            additional_headers={TICKET_HEADER: ticket},
            open_timeout=PATIENCE_S,
            close_timeout=1,
            ping_interval=None,
            proxy=None,
        ) as socket:
            async for each in _listen(socket, url, ticket, silence_s):
                yield each
    except InvalidStatus as error:
        says = f"The proxy opens no stream: it answers {error.response.status_code} to a WebSocket."
        yield fail(ABOUT, says, UPGRADE)
    except (WebSocketException, OSError) as error:
        yield fail(ABOUT, f"The proxy opens no stream: {str(error).rstrip('.') or 'no answer'}.", UPGRADE)


async def _listen(
    socket: ClientConnection, url: SplitResult, ticket: str, silence_s: float
) -> AsyncIterator[Diagnosis]:
    try:
        async with asyncio.timeout(PROMPT_S):
            seen = read_answer(ticket, str(await socket.recv()))
    except TimeoutError:
        yield fail(ABOUT, f"A frame did not come within {PROMPT_S:g} s: the proxy holds it back.", UNBUFFERED)
        return
    except NotOfThisInstallation:
        yield fail(ABOUT, "Streams lead to something other than this installation.", UPGRADE)
        return
    except ConnectionClosed:
        yield fail(ABOUT, "The proxy closes a stream before its first frame.", UPGRADE)
        return
    yield ok(ABOUT, "WebSockets are opened, and a frame passes at once.")
    host, port = socket.local_address[:2]
    sent = Asking(url.scheme, url.hostname or "", (host, port))
    if not is_direct(sent, seen):
        yield judge_client(sent, seen, ABOUT)
    if silence_s:
        yield await _be_silent(socket, silence_s)


async def _be_silent(socket: ClientConnection, silence_s: float) -> Diagnosis:
    began_at = time.monotonic()
    try:
        async with asyncio.timeout(silence_s):
            await socket.recv()
    except TimeoutError:
        pass
    except ConnectionClosed:
        return _cut(time.monotonic() - began_at)
    try:
        await socket.send("still there?")
        async with asyncio.timeout(PROMPT_S):
            await socket.recv()
    except (ConnectionClosed, TimeoutError):
        return _cut(time.monotonic() - began_at)
    return ok(ABOUT, f"A silent stream stays open, for {silence_s:g} s at least.")


def _cut(after_s: float) -> Diagnosis:
    return fail(ABOUT, f"The proxy cuts a stream off that is silent for {after_s:.0f} s.", LONGER)
