"""What a connection may take its time for. The limits are shorter here than those of the service."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from serving.http.deadlines import BYTES_A_SECOND, Deadline, HttpTimeouts, TransferPace
from tests.patience import wait_until

from .conversations import Texts, get
from .serving import HOST, Serving, hear, serving, statuses

GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
LARGE = b"GET /large HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST / HTTP/1.1\r\nContent-Length: 1000\r\n" + HOST + b"\r\n"
SOON = {"look_every_s": 0.05, "leave_s": 0.5}

# Longer than a busy machine takes from connecting to the first byte.
FOR_A_HEAD_S = 3.0
UNENDED = (
    b"G",
    b"GET / HTTP/1.1\r\nX: ",
    b"GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
)


@pytest.fixture(scope="module")
def hasty() -> Iterator[Serving]:
    """Bodies and readers have half a second."""
    with serving(head_s=FOR_A_HEAD_S, grace_s=0.5, **SOON) as running:
        yield running


def drip(client: socket.socket, data: bytes) -> bytes:
    """Byte by byte until the server has enough; what it says then."""
    with suppress(OSError):
        for byte in data:
            client.sendall(bytes((byte,)))
            time.sleep(0.05)
    return hear(client)


def answered(client: socket.socket) -> socket.socket:
    """A connection whose first request has its answer."""
    client.sendall(GET)
    heard = b""
    while b"answered" not in heard:
        data = client.recv(65536)
        assert data, heard
        heard += data
    return client


def test_silence_is_closed_without_a_word() -> None:
    with serving(head_s=0.5, **SOON) as running, running.connect() as client:
        assert hear(client) == b""


def test_a_head_that_does_not_end_is_408(hasty: Serving) -> None:
    """All at once, because each takes its time."""
    with ExitStack() as stack:
        begun = [stack.enter_context(hasty.connect()) for _ in UNENDED]
        for client, part in zip(begun, UNENDED, strict=True):
            client.sendall(part)
        later = answered(stack.enter_context(hasty.connect()))
        dripping = stack.enter_context(hasty.connect())
        assert statuses(drip(dripping, b"GET / HTTP/1.1\r\nX: " + b"a" * 10_000)) == [408]
        assert [statuses(hear(client)) for client in begun] == [[408]] * len(UNENDED)
        # Between requests there is more time than for a head; the next head has as long as the first.
        later.sendall(b"GET")
        assert statuses(hear(later)) == [408]


def test_a_head_that_does_not_end_behind_known_ones_is_408(hasty: Serving) -> None:
    hasty.offer(Texts())
    known = get("/short/a")
    with hasty.connect() as client:
        client.sendall(known * 3 + known[:-2] + b"X: ")
        assert statuses(drip(client, b"a" * 1_000)) == [200] * 3 + [408]
    with hasty.connect() as client:
        client.sendall(known)
        assert statuses(drip(client, known[:5])) == [200, 408]


@pytest.mark.parametrize("sent", [0, 1, 999])
def test_a_body_that_stops_is_408(hasty: Serving, sent: int) -> None:
    with hasty.connect() as client:
        client.sendall(POST + b"x" * sent)
        assert statuses(hear(client)) == [408]


def test_a_dripping_body_is_408_and_the_application_hears_that_it_ended(hasty: Serving) -> None:
    before = hasty.app.disconnected
    with hasty.connect() as client:
        client.sendall(POST)
        assert statuses(drip(client, b"x" * 1000)) == [408]
    wait_until(lambda: hasty.app.disconnected > before)


def test_who_reads_nothing_is_given_up(hasty: Serving) -> None:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", hasty.port))
        before = len(hasty.app.requests)
        client.sendall(LARGE)
        wait_until(lambda: len(hasty.app.requests) > before)
        wait_until(lambda: hasty.open_connections == 0)


def test_who_pipelines_and_reads_nothing_is_given_up(hasty: Serving) -> None:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(0.2)
        client.connect(("127.0.0.1", hasty.port))
        with suppress(OSError):
            client.sendall(GET * 100_000)
        wait_until(lambda: hasty.open_connections == 0)


def test_who_reads_late_but_reads_has_it_all() -> None:
    """Both patiences outlast it on any machine: it is their looks in between that it must survive."""
    with serving(look_every_s=0.05, grace_s=60.0, leave_s=60.0) as patient, patient.connect() as client:
        client.sendall(LARGE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        time.sleep(0.5)
        assert len(hear(client)) > 8_000_000


def test_an_idle_connection_is_closed_in_the_end() -> None:
    with serving(idle_s=0.5, **SOON) as running, running.connect() as client:
        client.sendall(GET)
        assert statuses(hear(client)) == [200]


def test_uvicorns_own_patience_between_requests_is_not_asked() -> None:
    with serving({"timeout_keep_alive": 1}) as running, running.connect() as client:
        answered(client)
        time.sleep(1.5)
        client.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert statuses(hear(client)) == [200]


def test_control_the_protocol_as_it_comes_heeds_that_patience() -> None:
    with serving({"timeout_keep_alive": 1, "http": "httptools"}) as running, running.connect() as client:
        answered(client)
        assert hear(client) == b""


def test_a_bot_that_asks_every_minute_keeps_its_connection() -> None:
    assert HttpTimeouts.idle_s == 75


def test_slow_heads_and_bodies_end_in_time() -> None:
    assert HttpTimeouts.head_s == 10
    # The longest body of a stranger, at the least pace.
    assert HttpTimeouts.grace_s + 64 * 1024 / BYTES_A_SECOND <= 30


def test_what_was_started_last_is_due_last() -> None:
    waiting: Deadline[str] = Deadline(10)
    waiting.start("first", 0)
    waiting.start("second", 1)
    waiting.start("first", 2)

    assert list(waiting.due(10.5)) == []
    assert list(waiting.due(11)) == ["second"]
    assert list(waiting.due(100)) == ["first"]
    assert len(waiting) == 0


def test_pace_is_counted_from_the_beginning_but_for_pauses() -> None:
    pace, grace_s = TransferPace(0), HttpTimeouts.grace_s
    assert not pace.is_too_slow(grace_s, grace_s)
    assert pace.is_too_slow(grace_s + 0.1, grace_s)

    pace.moved(10 * BYTES_A_SECOND)
    assert not pace.is_too_slow(grace_s + 10, grace_s)
    assert pace.is_too_slow(grace_s + 10.1, grace_s)

    pace.pause(5)
    assert not pace.is_too_slow(grace_s + 15, grace_s)
