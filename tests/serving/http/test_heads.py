"""How long the head of a request may be, and that nothing beyond it is parsed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from serving.http.bounds import END_OF_HEAD, MOST_HEAD_BYTES, MOST_HEADERS, RequestHead, is_one_head
from tests.patience import wait_until

from .serving import HOST, SOON, CountingProtocol, Serving, flood, hear, serving, statuses

GET = b"GET / HTTP/1.1\r\n" + HOST
CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n"
CLOSE = b"Connection: close\r\n\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(**SOON) as running:
        yield running


def code(heard: bytes) -> str:
    return str(json.loads(heard.partition(END_OF_HEAD)[2])["error"]["code"])


def padded(size: int) -> bytes:
    """A head of that many bytes."""
    start = GET + b"X-Long: "
    return start + b"a" * (size - len(start) - len(b"\r\n" + CLOSE)) + b"\r\n" + CLOSE


def test_a_head_of_32_kib_is_read(server: Serving) -> None:
    assert statuses(server.converse(padded(MOST_HEAD_BYTES))) == [200]


@pytest.mark.parametrize("cut", [None, 20, 20_000])
def test_a_longer_head_is_431(server: Serving, cut: int | None) -> None:
    head = padded(MOST_HEAD_BYTES + 1)
    heard = server.converse(head) if cut is None else server.converse(head[:cut], head[cut:])

    assert statuses(heard) == [431]
    assert code(heard) == "head_too_large"


def test_a_hundred_headers_are_read_and_one_more_is_431(server: Serving) -> None:
    more = [b"a:%d\r\n" % number for number in range(MOST_HEADERS - 1)]

    assert statuses(server.converse(GET + b"".join(more[:-1]) + CLOSE)) == [200]
    assert statuses(server.converse(GET + b"".join(more) + CLOSE)) == [431]


def test_a_first_line_that_does_not_end_is_414(server: Serving) -> None:
    assert statuses(server.converse(b"GET /" + b"a" * MOST_HEAD_BYTES)) == [414]


def test_the_head_of_a_later_request_has_the_same_limit(server: Serving) -> None:
    assert statuses(server.converse(GET + b"\r\n" + padded(MOST_HEAD_BYTES))) == [200, 200]
    assert statuses(server.converse(GET + b"\r\n" + padded(MOST_HEAD_BYTES + 1))) == [200, 431]


def test_trailers_have_the_limit_of_headers(server: Serving) -> None:
    trailers = [b"a:%d\r\n" % number for number in range(MOST_HEADERS + 1)]
    heard = server.converse(CHUNKED, b"1\r\nx\r\n0\r\n", *trailers, b"\r\n", gap_s=0.0)

    assert statuses(heard) == [431]


def test_trailers_are_no_headers(server: Serving) -> None:
    trailer = b"X-API-Key: late\r\n\r\n"
    heard = server.converse(CHUNKED, b"1\r\nx\r\n0\r\n" + trailer, GET + CLOSE)

    assert statuses(heard) == [200, 200]
    assert all(name != b"x-api-key" for name, _ in server.app.requests[-2]["headers"])


@pytest.mark.parametrize("endless", [b"1;", b"0\r\nX: "], ids=["chunk extension", "trailer"])
def test_what_frames_a_body_may_not_be_endless(server: Serving, endless: bytes) -> None:
    disconnected = server.app.disconnected
    heard = server.converse(CHUNKED + endless, *[b"a" * 8_000] * 20, gap_s=0.0)

    assert statuses(heard) == [400]
    # The application does not wait for it either.
    wait_until(lambda: server.app.disconnected > disconnected)


def test_megabytes_of_headers_are_not_parsed_and_do_not_hold_up_others(server: Serving) -> None:
    requests, parsed = len(server.app.requests), CountingProtocol.parsed
    with server.connect() as hostile:
        hostile.sendall(GET)
        flood(hostile, b"a:b\r\n" * 10_000)
        assert statuses(server.converse(GET + CLOSE)) == [200]
        assert statuses(hear(hostile)) == [431]
    assert len(server.app.requests) == requests + 1
    # Of all that the kernel took: as many as a head may have, and the one that is too much.
    assert CountingProtocol.parsed - parsed <= MOST_HEADERS + 1 + 3


@pytest.mark.parametrize("cut", range(1, len(END_OF_HEAD) + 1))
def test_the_end_of_a_head_is_seen_across_what_came_before(cut: int) -> None:
    head, whole = RequestHead(), GET + b"\r\n"
    start, rest = whole[:-cut], whole[-cut:]

    assert head.take(start) == len(start)
    assert head.take(rest + b"more") == len(rest)
    assert head.size == len(whole)


def test_one_whole_head_is_told_from_less_and_from_more() -> None:
    assert is_one_head(GET + b"\r\n")
    assert not is_one_head(GET)
    assert not is_one_head(b"GET")
    assert not is_one_head(GET + b"\r\n" + GET + b"\r\n")
