"""The proxy: requests to the public address, over HTTP and WebSocket, to which the service answers with what
it received."""

import asyncio
import http.client
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from core.program import command
from core.request_headers import is_our_host
from core.version import VERSION
from pages.static_files import are_collected
from serving.request_echo import (
    FORWARDED_FOR,
    HTTP_PATH,
    SOCKET_PATH,
    STRANGE,
    TICKET_HEADER,
    NotOfThisInstallation,
    SeenRequest,
    make_ticket,
    read_answer,
)
from serving.server import shown_address

from .diagnosis import Diagnosis, fail, ok, warn

# Compares a request as it was sent with what arrived behind the proxy; pure.
PROXY = "proxy"
FOR = (
    "nginx: proxy_set_header X-Forwarded-For $remote_addr; "
    "HAProxy: http-request set-header X-Forwarded-For %[src]"
)
SEND_FOR = f"Let the proxy send the client's address in X-Forwarded-For ({FOR})."
OVERWRITE = f"Let the proxy overwrite the X-Forwarded-For of a client ({FOR})."
PROTO = "nginx: proxy_set_header X-Forwarded-Proto $scheme"
SEND_PROTO = f"Let the proxy send X-Forwarded-Proto: https ({PROTO})."
KEEP_HOST = "Let the proxy pass on the Host that the client named (nginx: proxy_set_header Host $host)."


class Asking(NamedTuple):
    """The request as it was sent."""

    scheme: str
    host: str
    own_address: tuple[str, int]


def is_direct(sent: Asking, seen: SeenRequest) -> bool:
    """The very connection that we opened ends at the service."""
    return (plain(seen.client), seen.port) == (plain(sent.own_address[0]), sent.own_address[1])


def judge_headers(sent: Asking, seen: SeenRequest, *, is_ours: bool) -> Iterator[Diagnosis]:
    """`is_ours`: whether ALLOWED_HOSTS has the host that was seen."""
    if is_direct(sent, seen):
        yield ok(PROXY, "There is no proxy between this machine and the service.")
        return
    yield judge_client(sent, seen)
    yield from _judge_scheme(sent, seen)
    if not is_ours:
        says = f"The proxy turns the Host {sent.host} into {seen.host or 'none'}, which ALLOWED_HOSTS lacks."
        yield fail(PROXY, says, KEEP_HOST)
    elif seen.host.partition(":")[0] != sent.host:
        says = f"The proxy turns the Host {sent.host} into {seen.host}, and links in mails will name that."
        yield warn(PROXY, says, KEEP_HOST)


def judge_client(sent: Asking, seen: SeenRequest, about: str = PROXY) -> Diagnosis:
    client = plain(seen.client)
    if seen.forwarded_for:
        if client in [plain(part) for part in seen.forwarded_for.split(",")]:
            return ok(about, f"The service sees clients by their own addresses: this machine is {client}.")
        says = f"The service takes the proxy at {client} for the client, because it does not trust it."
        return fail(about, says, f"Set TRUSTED_PROXIES={client} for the service.")
    # The service itself speaks no TLS, so a proxy stands in front of it and does not name the client.
    if sent.scheme == "https" or not _is_of_the_internet(client):
        says = f"All clients seem to come from {client}, the proxy, and share the limits of one address."
        return fail(about, says, SEND_FOR)
    return ok(about, f"The service sees this machine as {client}.")


def _judge_scheme(sent: Asking, seen: SeenRequest) -> Iterator[Diagnosis]:
    if sent.scheme != "https":
        return
    if seen.scheme == "https":
        yield ok(PROXY, "The service knows that its clients use TLS.")
    elif seen.forwarded_proto == "https":
        says = "The service does not trust the proxy's X-Forwarded-Proto, and redirects clients in circles."
        yield fail(PROXY, says, "Set TRUSTED_PROXIES for the service to the address of the proxy.")
    else:
        state = f"says {seen.forwarded_proto}" if seen.forwarded_proto else "is missing"
        says = f"X-Forwarded-Proto {state}, so pages redirect clients in circles."
        yield fail(PROXY, says, SEND_PROTO)


def judge_forged(forged: str, seen: SeenRequest) -> Diagnosis:
    if seen.forwarded_for.strip() == forged:
        says = "The proxy passes on the X-Forwarded-For of a client, who can so choose an address."
        return fail(PROXY, says, OVERWRITE)
    if plain(seen.client) == forged:
        says = (
            "A client can choose the address that the service sees: TRUSTED_PROXIES has the client in it too."
        )
        return fail(PROXY, says, f"Name only the address of the proxy there. {OVERWRITE}")
    return ok(PROXY, "A client cannot choose the address that the service sees.")


def _is_of_the_internet(client: str) -> bool:
    try:
        return ip_address(client).is_global
    except ValueError:
        # A socket in the file system has no address.
        return False


def plain(address: str) -> str:
    """Without port, brackets and the IPv6 form of an IPv4 address."""
    text = address.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    return text.removeprefix("::ffff:")


# Requests from outside, over HTTP and WebSocket, through any proxy.
PATIENCE_S = 10.0
MOST_BYTES = 20_000
# Reserved for documentation (RFC 5737), so that no client has it.
FORGED = "192.0.2.77"


class Certificate(NamedTuple):
    lives_s: float
    left_s: float


class Heard(NamedTuple):
    """The answer, and the address from which we sent the request."""

    status: int
    body: str
    location: str
    own_address: tuple[str, int]
    certificate: Certificate | None


class NoAddress(ValueError):
    """The given address of the service is invalid."""


def default_url() -> str:
    """In production the first host by its name; else the service that would run on this machine."""
    names = [host.lstrip(".") for host in settings.ALLOWED_HOSTS if host.strip(".*")]
    if settings.PRODUCTION and names:
        return f"https://{names[0]}"
    return shown_address(settings.HOST, settings.PORT)


def read_url(text: str) -> SplitResult:
    try:
        url = urlsplit(text if "//" in text else f"https://{text}")
        is_one = url.scheme in ("http", "https") and url.hostname and (url.port or 1)
    except ValueError:
        is_one = False
    if not is_one:
        raise NoAddress(f"{text!r} is not the address of a service: write https://api.example.com")
    return url


def ask(url: SplitResult, ticket: str = "", *, forged: bool = False) -> Heard:
    """`forged`: as a client that claims another address. Raises OSError and http.client.HTTPException."""
    headers = {TICKET_HEADER: ticket or make_ticket(), "Connection": "close"}
    if forged:
        headers[FORWARDED_FOR] = FORGED
    connection = _connection(url)
    try:
        connection.request("GET", f"{url.path.rstrip('/')}{HTTP_PATH}", headers=headers)
        host, port = connection.sock.getsockname()[:2]
        certificate = _certificate_of(connection.sock)
        answer = connection.getresponse()
        body = answer.read(MOST_BYTES).decode(errors="replace")
        return Heard(answer.status, body, answer.headers.get("Location", ""), (host, port), certificate)
    finally:
        connection.close()


def _connection(url: SplitResult) -> http.client.HTTPConnection:
    host = url.hostname or ""
    if url.scheme == "http":
        return http.client.HTTPConnection(host, url.port or 80, timeout=PATIENCE_S)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(host, url.port or 443, timeout=PATIENCE_S, context=context)


def _certificate_of(sock: object) -> Certificate | None:
    found = sock.getpeercert() if isinstance(sock, ssl.SSLSocket) else None
    if not found:
        return None
    begins, ends = (ssl.cert_time_to_seconds(str(found[name])) for name in ("notBefore", "notAfter"))
    return Certificate(ends - begins, ends - time.time())


# What the program itself needs: its static files, and room for connections.
# Of the process itself: the database, Redis, feeds, files, and some to spare.
FOR_ITSELF = 64
ENOUGH = 4096


def check_static_files() -> Iterator[Diagnosis]:
    about = "static files"
    if not settings.PRODUCTION:
        yield ok(about, "Outside production they are served from where they lie.")
    elif are_collected():
        yield ok(about, "They are collected, and those of this version.")
    else:
        says = f"{settings.STATIC_ROOT} does not hold those of this version yet."
        yield warn(
            about, says, "`serve` collects them when it starts; for other servers run `collectstatic`."
        )


def judge_descriptors(most: int) -> Diagnosis:
    """`most`: what the service itself says, because this command was started by another user."""
    about = "connections"
    needed = FOR_ITSELF + settings.API_THREADS + settings.PAGE_THREADS + settings.CONNECTIONS_PER_ADDRESS
    fix = "Raise it: LimitNOFILE=65536 in the systemd unit, or ulimit -Hn 65536 in the shell that starts it."
    if most >= ENOUGH:
        return ok(about, f"The service may open {most:,} files.")
    if most < needed:
        says = f"The service may open {most:,} files, and its settings need {needed:,} for a single client."
        return fail(about, says, fix)
    return warn(about, f"The service may open {most:,} files, so it has fewer than that many clients.", fix)


# Streams through the proxy: whether it opens them, passes each frame on at once, and bears silence.
STREAMS = "streams"
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
        yield fail(STREAMS, says, UPGRADE)
    except (WebSocketException, OSError) as error:
        yield fail(STREAMS, f"The proxy opens no stream: {str(error).rstrip('.') or 'no answer'}.", UPGRADE)


async def _listen(
    socket: ClientConnection, url: SplitResult, ticket: str, silence_s: float
) -> AsyncIterator[Diagnosis]:
    try:
        async with asyncio.timeout(PROMPT_S):
            seen = read_answer(ticket, str(await socket.recv()))
    except TimeoutError:
        yield fail(
            STREAMS, f"A frame did not come within {PROMPT_S:g} s: the proxy holds it back.", UNBUFFERED
        )
        return
    except NotOfThisInstallation:
        yield fail(STREAMS, "Streams lead to something other than this installation.", UPGRADE)
        return
    except ConnectionClosed:
        yield fail(STREAMS, "The proxy closes a stream before its first frame.", UPGRADE)
        return
    yield ok(STREAMS, "WebSockets are opened, and a frame passes at once.")
    host, port = socket.local_address[:2]
    sent = Asking(url.scheme, url.hostname or "", (host, port))
    if not is_direct(sent, seen):
        yield judge_client(sent, seen, STREAMS)
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
    return ok(STREAMS, f"A silent stream stays open, for {silence_s:g} s at least.")


def _cut(after_s: float) -> Diagnosis:
    return fail(STREAMS, f"The proxy cuts a stream off that is silent for {after_s:.0f} s.", LONGER)


DAY_S = 86_400
BEHIND = "See that the service runs, and that the proxy names its host and port."


def check_proxy(url: SplitResult, *, is_named: bool, silence_s: float) -> Iterator[Diagnosis]:
    """`is_named`: in the command; otherwise it may well be that nothing runs there."""
    try:
        ticket = make_ticket()
    except ImproperlyConfigured:
        fix = f"Start it with `{command('serve')}`, or give this command the SECRET_KEY of the service."
        yield warn(
            PROXY, "Without a SECRET_KEY, it is impossible to tell whether this installation answers.", fix
        )
        return
    try:
        heard = ask(url, ticket)
        seen = read_answer(ticket, heard.body)
    except (OSError, http.client.HTTPException) as error:
        yield _unreachable(url, error, is_expected=is_named or settings.PRODUCTION)
        return
    except NotOfThisInstallation:
        yield from _certificate(heard.certificate)
        yield _other_answer(url, heard)
        return
    yield ok(PROXY, f"{url.geturl()} is answered by this installation.")
    yield from _encryption(url, heard)
    yield from _version(seen)
    yield judge_descriptors(seen.open_files)
    sent = Asking(url.scheme, url.hostname or "", heard.own_address)
    yield from judge_headers(sent, seen, is_ours=is_our_host(seen.host))
    if not is_direct(sent, seen):
        yield from _forged(url)
    yield from check_socket(url, silence_s)


def _unreachable(url: SplitResult, error: Exception, *, is_expected: bool) -> Diagnosis:
    address = url.geturl()
    if isinstance(error, ssl.SSLCertVerificationError):
        says = f"The certificate of {address} is not valid: {error.verify_message}."
        return fail(
            PROXY, says, f"Install one for {url.hostname}, with the certificates between it and its root."
        )
    reason = getattr(error, "strerror", "") or str(error) or type(error).__name__
    says = f"{address} cannot be reached: {reason.rstrip('.')}."
    if is_expected:
        return fail(PROXY, says, "See that the proxy runs, and that the name and the firewall lead there.")
    fix = f"If it runs, name its address: `{command('doctor --url ADDRESS')}`; else `{command('serve')}`."
    return warn(PROXY, says, fix)


def _other_answer(url: SplitResult, heard: Heard) -> Diagnosis:
    address = url.geturl()
    if heard.location:
        says = f"{address} sends clients elsewhere, to {heard.location}."
        return fail(PROXY, says, "Name the address that clients use: --url.")
    if heard.status in (502, 503, 504):
        return fail(PROXY, f"The proxy at {address} does not reach the service ({heard.status}).", BEHIND)
    if heard.status == 403 and heard.body == STRANGE:
        says = f"{address} leads to another installation of Tickwire, with another SECRET_KEY."
        fix = "Give all processes the same SECRET_KEY and clock, or point the proxy at this installation."
        return fail(PROXY, says, fix)
    says = f"Something other than Tickwire answers at {address} ({heard.status})."
    return fail(PROXY, says, BEHIND)


def _encryption(url: SplitResult, heard: Heard) -> Iterator[Diagnosis]:
    if url.scheme == "http" and settings.PRODUCTION:
        says = f"{url.geturl()} has no TLS: keys and passwords cross the network unencrypted."
        yield fail(PROXY, says, "Let the proxy end TLS, and send http:// to https://.")
    yield from _certificate(heard.certificate)


def _certificate(found: Certificate | None) -> Iterator[Diagnosis]:
    if found is None:
        return
    days = found.left_s / DAY_S
    # Some live for a week and others for a year; each should have been renewed by then.
    if days >= 21 or found.left_s > found.lives_s / 5:
        yield ok(PROXY, f"Its certificate is valid for {days:,.0f} more days.")
        return
    says = f"Its certificate ends in {days:,.1f} days."
    fix = "Renew it, and find out why the automatic renewal failed."
    yield fail(PROXY, says, fix) if days < 3 else warn(PROXY, says, fix)


def _version(seen: SeenRequest) -> Iterator[Diagnosis]:
    if seen.version != VERSION:
        says = f"The service runs version {seen.version}, and this command is of {VERSION}."
        yield warn(PROXY, says, "Restart the service to end the upgrade, or call the command of its version.")


def _forged(url: SplitResult) -> Iterator[Diagnosis]:
    ticket = make_ticket()
    try:
        yield judge_forged(FORGED, read_answer(ticket, ask(url, ticket, forged=True).body))
    except (OSError, http.client.HTTPException, NotOfThisInstallation) as error:
        says = f"A second request to {url.geturl()} failed: {error}."
        yield fail(PROXY, says, "See whether several services answer there, not all of this installation.")
