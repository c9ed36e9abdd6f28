"""uvicorn's HTTP protocol with bounds on what a client can make it hold, do or believe.

One request is read at a time: what comes behind it waits unparsed until it is answered. It depends on
internals of the uvicorn that is pinned in pyproject.toml."""

import asyncio
import logging
from base64 import b64decode
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from core.contract import answers

from . import bounds, refusals
from .bounds import MOST_DIGITS, RequestBody
from .connections import CONNECTION_EXTENSION
from .deadlines import ANSWERING, BODY, HEAD, IDLE, OVER, Exchange, TransferPace
from .refusals import (
    BAD_HANDSHAKE,
    BAD_UPGRADE,
    MALFORMED,
    OTHER_CODING,
    OTHER_HOST,
    OTHER_WEBSOCKET,
    HttpRefusal,
    RequestRefused,
)
from .short_path import ShortPathProtocol

# The headers that decide where a request ends, its target, and upgrades: one reading of each, or none.
Noted = dict[bytes, list[bytes]]
KEY_HEADER, VERSION_HEADER = b"sec-websocket-key", b"sec-websocket-version"
FRAMING_HEADERS = frozenset(
    (b"host", b"content-length", b"expect", b"transfer-encoding", b"upgrade", KEY_HEADER, VERSION_HEADER)
)


def read_size(noted: Noted, version: str) -> int | None:
    """The length of the body; None where it comes in chunks."""
    codings, lengths = noted.get(b"transfer-encoding"), noted.get(b"content-length")
    if codings is not None:
        if lengths or version == "1.0" or [coding.strip().lower() for coding in codings] != [b"chunked"]:
            raise RequestRefused(OTHER_CODING)
        return None
    if lengths is None:
        return 0
    if len(lengths) > 1 or not lengths[0].isdigit() or len(lengths[0]) > MOST_DIGITS:
        raise RequestRefused(MALFORMED)
    return int(lengths[0])


SCHEMES = (b"http", b"https")


class Target(NamedTuple):
    path: str
    raw_path: bytes
    query: bytes


def read_target(url: bytes, host: bytes | None) -> Target:
    try:
        parsed = httptools.parse_url(url)
        raw_path: bytes = parsed.path or b"/"
        path = raw_path.decode("ascii")
    except (httptools.HttpParserInvalidURLError, UnicodeDecodeError):
        raise RequestRefused(MALFORMED) from None
    if parsed.host is not None:
        check_named(url, parsed.schema, host)
    return Target(unquote(path) if "%" in path else path, raw_path, parsed.query or b"")


def check_named(url: bytes, scheme: bytes | None, host: bytes | None) -> None:
    """A whole address as the target, as a proxy gets it, must name the same host as the Host header."""
    if scheme is None or scheme.lower() not in SCHEMES:
        raise RequestRefused(MALFORMED)
    named = url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
    if host is None or named.lower() != host.lower():
        raise RequestRefused(OTHER_HOST)


KEY_BYTES = 16


def begins_websocket(method: str, version: str, noted: Noted) -> bool:
    """This server supports no other upgrade (such as h2c), and may ignore that one was asked for."""
    if [value.strip().lower() for value in noted.get(b"upgrade", ())] != [b"websocket"]:
        return False
    if method != "GET" or version != "1.1":
        raise RequestRefused(BAD_UPGRADE)
    if noted.get(VERSION_HEADER) != [b"13"]:
        raise RequestRefused(OTHER_WEBSOCKET)
    if not is_key(noted.get(KEY_HEADER, [])):
        raise RequestRefused(BAD_HANDSHAKE)
    return True


def is_key(sent: list[bytes]) -> bool:
    try:
        return len(sent) == 1 and len(b64decode(sent[0], validate=True)) == KEY_BYTES
    except ValueError:
        return False


def websocket_request(method: str, url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The head again, for a protocol that reads it from the beginning."""
    lines = [
        method.encode() + b" " + url + b" HTTP/1.1",
        *(b": ".join(header) for header in headers),
        b"",
        b"",
    ]
    return b"\r\n".join(lines)


logger = logging.getLogger(__name__)
CONTINUE = b"100-continue"
NO_BODY = RequestBody(0, 0)

# What is left of a body when its answer is there is read, or the connection ends.
MOST_UNHEARD = 64 * 1024


class HttpProtocol(ShortPathProtocol):
    _noted: Noted
    _sent: list[tuple[bytes, bytes]]
    """The headers of the request that is being parsed or answered."""
    _refusal: HttpRefusal | None = None
    _is_upgraded = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.write = transport.write
        host = self.client[0] if self.client else ""
        self.connection, refusal = self.watch.arrived(host, transport)
        self._extensions: dict[str, Any] = {CONNECTION_EXTENSION: self.connection}
        if refusal is None:
            self.watch.heads.start(self, self.loop.time())
        else:
            self.refuse(refusal)

    def data_received(self, data: bytes) -> None:
        if self.state == IDLE:
            if self.knows(data):
                return
            if bounds.is_one_head(data):
                self._read_head(data)
                return
        if self.state in (IDLE, HEAD, BODY):
            self._read(data)
        elif self.state == OVER or self._is_last:
            self.swallow(len(data))
        else:
            self._kept += data
            self.flow.pause_reading()

    def _read_head(self, data: bytes) -> None:
        """A whole one, and nothing else."""
        self.watch.idle.stop(self)
        self.state = HEAD
        self.repeat(data)
        self._waited = False

    def repeat(self, head: bytes) -> None:
        self._whole = head
        self._parse(head)
        if self.state == HEAD:
            # A blank line stood in front of it.
            self.watch.heads.start(self, self.loop.time())

    def _read(self, data: bytes) -> None:
        """Part by part, so that each stops where its message does, as far as that is known."""
        while data and self.state in (IDLE, HEAD, BODY):
            if self.state == IDLE:
                data = self.answer_known(data)
                if not data or self.state != IDLE:
                    break
                self.watch.idle.stop(self)
                self.state = HEAD
            size = (self.head if self.state == HEAD else self.body).take(data)
            if self.state == HEAD and self.head.is_too_long:
                self.refuse(refusals.LONG_HEAD if self.head.has_line else refusals.LONG_TARGET)
                return
            was, part = self.state, data[:size]
            self._whole = part if self.head.size == size and part.endswith(bounds.END_OF_HEAD) else b""
            self._parse(part)
            if was == BODY and self.state == HEAD:
                # How much of the part is head is not known: all of it counts.
                self.head.size += size
            data = data[size:]
        self._waited = False
        if self._is_upgraded:
            if data and not self.transport.is_closing():
                self.transport.get_protocol().data_received(data)  # type: ignore[attr-defined]
        elif data:
            self.data_received(data)
        elif self.state == HEAD and self not in self.watch.heads:
            self.watch.heads.start(self, self.loop.time())

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Any other upgrade is ignored, and what comes after its request is not HTTP for sure.
            if self._is_upgraded:
                self.handle_websocket_upgrade()
        except httptools.HttpParserError as error:
            self._fail(error)
        else:
            if self.state == BODY and self.body.is_mostly_framing:
                self.refuse(refusals.LONG_FRAMING)

    def _fail(self, error: httptools.HttpParserError) -> None:
        refusal, self._refusal = self._refusal, None
        if refusal is None and isinstance(error, httptools.HttpParserCallbackError):
            logger.error("A request could not be read.", exc_info=error.__context__)
        if self.state == ANSWERING:
            # Behind a chunked body, in the same part, comes what is no part of it.
            self._is_last = True
            if self.cycle is not None:
                self.cycle.keep_alive = False
            return
        self.refuse(refusal or refusals.MALFORMED)

    def _stop(self, refusal: HttpRefusal) -> RequestRefused:
        """The refusal to raise, because the parser does not report what stopped it."""
        self._refusal = refusal
        return RequestRefused(refusal)

    # What the parser meets

    def on_message_begin(self) -> None:
        if self.state == ANSWERING:
            raise self._stop(refusals.MALFORMED)
        if self.state == IDLE:
            # Behind the end of a chunked body, in the same part.
            self.watch.idle.stop(self)
            self.state = HEAD
        self.url = b""
        self.headers = []
        self._noted = {}

    def _make_scope(self) -> None:
        extensions = self._extensions
        if self.already_done is not None:
            extensions, self.already_done = {**extensions, answers.ALREADY_DONE: self.already_done}, None
        self.scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,  # type: ignore[typeddict-item]
            "root_path": self.root_path,
            "headers": self._sent,
            "state": self.app_state.copy(),
            "extensions": extensions,
        }

    def on_header(self, name: bytes, value: bytes) -> None:
        headers = self.headers
        if len(headers) >= bounds.MOST_HEADERS:
            raise self._stop(refusals.LONG_HEAD)
        name = name.lower()
        headers.append((name, value))
        if name in FRAMING_HEADERS:
            self._noted.setdefault(name, []).append(value)

    def on_headers_complete(self) -> None:
        self.watch.heads.stop(self)
        self.head.begin()
        # Trailers are counted and ignored.
        self._sent, self.headers = self.headers, []
        try:
            self._begin()
        except RequestRefused as refused:
            raise self._stop(refused.refusal) from None

    def _begin(self) -> None:
        noted, parser = self._noted, self.parser
        version = parser.get_http_version()
        if self._asks_shortly(version) and self.learns(self.url, self._sent):
            return
        self._make_scope()
        scope = self.scope
        if version != "1.1":
            if version != "1.0":
                raise RequestRefused(refusals.OTHER_VERSION)
            scope["http_version"] = version
        scope["method"] = parser.get_method().decode("ascii")
        size = read_size(noted, version)
        if parser.should_upgrade():
            if size != 0 or self._waited:
                raise RequestRefused(refusals.BAD_UPGRADE)
            if begins_websocket(scope["method"], version, noted):
                if self._is_last:
                    # All sockets were closed while this head arrived.
                    raise RequestRefused(refusals.STOPPING)
                self._is_upgraded = True
                return
            self._is_last = True
        self._locate(noted)
        self._expect_body(size)
        self._hand_over(version != "1.0" and not self._is_last and parser.should_keep_alive())

    def _asks_shortly(self, version: str) -> bool:
        """It has a target and one host, and nothing that concerns framing."""
        parser, noted = self.parser, self._noted
        return (
            version == "1.1"
            and parser.get_method() == b"GET"
            and len(noted) == 1
            and len(noted.get(b"host", ())) == 1
            and parser.should_keep_alive()
            and not parser.should_upgrade()
        )

    def _locate(self, noted: Noted) -> None:
        hosts = noted.get(b"host")
        target = read_target(self.url, hosts[0] if hosts else None)
        self.scope["path"] = self.root_path + target.path
        self.scope["raw_path"] = self.root_path.encode("ascii") + target.raw_path
        self.scope["query_string"] = target.query

    def _expect_body(self, size: int | None) -> None:
        if size == 0:
            self.body = NO_BODY
        else:
            self.body = body = RequestBody(size, bounds.most_bytes(self.scope["path"]))
            if body.is_too_long:
                raise RequestRefused(refusals.LONG_BODY[body.most])
            self.watch.bodies[self] = TransferPace(self.loop.time())
        self.state = BODY

    def _hand_over(self, keep_alive: bool) -> None:
        expected = self._noted.get(b"expect", ())
        self.cycle = Exchange(
            scope=self.scope,
            transport=cast(Any, self),
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=any(value.lower() == CONTINUE for value in expected),
            keep_alive=keep_alive,
            on_response=self.on_response_complete,
        )
        self._start_asgi_task(self.cycle, self.app)

    def on_body(self, body: bytes) -> None:
        self.body.received += len(body)
        if self.body.is_too_long:
            raise self._stop(refusals.LONG_BODY[self.body.most])
        cycle = self.cycle
        if cycle.response_complete:
            if self.body.received > MOST_UNHEARD:
                raise self._stop(refusals.LONG_BODY[bounds.MOST_BODY_BYTES])
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        if self._is_upgraded:
            return
        if self._is_short:
            self.end_short()
            return
        if self.body is not NO_BODY:
            self.watch.bodies.pop(self, None)
        cycle = self.cycle
        cycle.more_body = False
        self.state = ANSWERING
        if cycle.response_complete:
            self.await_next()
        else:
            cycle.message_event.set()

    # What the exchange asks and says

    def will_hear_the_rest(self) -> bool:
        return not self.cycle.waiting_for_100_continue and self.body.missing <= MOST_UNHEARD

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.state == OVER or self.transport.is_closing():
            return
        if self.state == ANSWERING:
            self.await_next()
        else:
            self.flow.resume_reading()

    def await_next(self) -> None:
        self.state = IDLE
        self.watch.idle.start(self, self.watch.now)
        self.flow.resume_reading()
        if self._kept:
            kept, self._kept = self._kept, b""
            self._waited = True
            self.data_received(kept)
            self._waited = False

    def handle_websocket_upgrade(self) -> None:
        request = websocket_request(self.scope["method"], self.url, self.scope["headers"])
        self.state = OVER
        self.watch.forget(self)
        self.connections.discard(self)
        # An exchange refers to its protocol; breaking the cycle frees both at once.
        self.cycle = None  # type: ignore[assignment]
        protocol: Any = self.ws_protocol_class(  # type: ignore[misc, call-arg]
            config=self.config, server_state=self.server_state, app_state=self.app_state
        )
        protocol.extensions = self._extensions
        protocol.on_lost = partial(self.watch.left, self.connection)
        protocol.connection_made(self.transport)
        protocol.data_received(request)
        self.transport.set_protocol(protocol)
