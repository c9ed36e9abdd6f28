"""How long a head and a body may be, that nothing beyond is read or parsed, and that its sender sees why."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from serving.http.bounds import (
    END_OF_HEAD,
    MOST_BODY_BYTES,
    MOST_HEAD_BYTES,
    MOST_HEADERS,
    MOST_IMPORT_BYTES,
    MOST_TICK_BYTES,
    RequestBody,
    RequestHead,
    is_one_head,
    most_bytes,
)
from serving.http.protocol import Noted, read_size
from serving.http.refusals import MALFORMED, OTHER_CODING, HttpRefusal, RequestRefused
from tests.patience import wait_until

from .serving import HOST, SOON, CountingProtocol, Serving, flood, hear, serving, statuses

GET = b"GET / HTTP/1.1\r\n" + HOST
CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n"
CLOSE = b"Connection: close\r\n"
IMPORT = b"/admin/instruments/instrument/import/"
HEADERS = [b"a:%d\r\n" % number for number in range(MOST_HEADERS + 1)]
FEW_READS = 4 * 64 * 1024
"""What reads before a refusal bring along, as the kernel had taken it in."""


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(**SOON) as running:
        yield running


def padded(size: int) -> bytes:
    """A head of that many bytes."""
    start, end = GET + b"X-Long: ", b"\r\n" + CLOSE + b"\r\n"
    return start + b"a" * (size - len(start) - len(end)) + end


def post(size: int, *lines: bytes, path: bytes = b"/") -> bytes:
    head = b"POST " + path + b" HTTP/1.1\r\nContent-Length: %d\r\n" % size
    return head + HOST + b"".join(lines) + b"\r\n"


def chunk(size: int) -> bytes:
    return b"%x\r\n" % size + b"x" * size + b"\r\n"


LONGER = padded(MOST_HEAD_BYTES + 1)
ANSWERED: dict[str, tuple[list[bytes], list[int], list[int] | None]] = {
    "a head of 32 KiB": ([padded(MOST_HEAD_BYTES)], [200], [0]),
    "a longer one": ([LONGER], [431], []),
    "cut soon": ([LONGER[:20], LONGER[20:]], [431], []),
    "cut late": ([LONGER[:20_000], LONGER[20_000:]], [431], []),
    "after another": ([GET + b"\r\n" + padded(MOST_HEAD_BYTES)], [200, 200], [0, 0]),
    "a longer one after another": ([GET + b"\r\n" + LONGER], [200, 431], [0]),
    "a hundred headers": ([GET + b"".join(HEADERS[:-3]) + CLOSE + b"\r\n"], [200], [0]),
    "one more": ([GET + b"".join(HEADERS[:-2]) + CLOSE + b"\r\n"], [431], []),
    "a first line that does not end": ([b"GET /" + b"a" * MOST_HEAD_BYTES], [414], []),
    "trailers": (
        [CHUNKED, b"1\r\nx\r\n0\r\nX-API-Key: late\r\n\r\n", GET + CLOSE + b"\r\n"],
        [200, 200],
        [1, 0],
    ),
    "too many trailers": ([CHUNKED, b"1\r\nx\r\n0\r\n", *HEADERS, b"\r\n"], [431], None),
    "a body of 64 KiB": ([post(MOST_BODY_BYTES, CLOSE), b"x" * MOST_BODY_BYTES], [200], [MOST_BODY_BYTES]),
    "one byte more": ([post(MOST_BODY_BYTES + 1)], [413], []),
    "chunks beyond": ([CHUNKED + chunk(MOST_BODY_BYTES), chunk(1) + b"0\r\n\r\n"], [413], None),
    "a long one that waits to be asked for": (
        [post(MOST_BODY_BYTES + 1, b"Expect: 100-continue\r\n")],
        [413],
        [],
    ),
    "an import of 10 MiB": (
        [post(MOST_IMPORT_BYTES, CLOSE, path=IMPORT), b"x" * MOST_IMPORT_BYTES],
        [200],
        [MOST_IMPORT_BYTES],
    ),
    "a longer import": ([post(MOST_IMPORT_BYTES + 1, path=IMPORT)], [413], []),
    "a request after a body that nobody read": (
        [post(9, path=b"/unread"), b"x" * 9 + post(0, CLOSE)],
        [200] * 2,
        [0],
    ),
}
"""What is sent, what is answered, and the bodies that the application read, if it does not break off."""


@pytest.mark.parametrize("what", ANSWERED)
def test_what_is_within_the_limits_is_read_and_nothing_else(server: Serving, what: str) -> None:
    parts, answers, received = ANSWERED[what]
    known, requests = len(server.app.received), len(server.app.requests)
    heard = server.converse(*parts, gap_s=0.0 if len(parts) > 9 else 0.01)

    assert statuses(heard) == answers
    # What was refused in the middle of its body, the application has read to its end by then.
    wait_until(lambda: not server.tasks)
    if received is not None:
        assert server.app.received[known:] == received
        assert len(server.app.requests) - requests == answers.count(200)
    if answers == [431]:
        assert json.loads(heard.partition(END_OF_HEAD)[2])["error"]["code"] == "head_too_large"
    assert all(name != b"x-api-key" for request in server.app.requests for name, _ in request["headers"])


@pytest.mark.parametrize(
    ("noted", "refusal"),
    [
        ({b"transfer-encoding": [b"chunked"], b"content-length": [b"4"]}, OTHER_CODING),
        ({b"transfer-encoding": [b"chunked"] * 2}, OTHER_CODING),
        ({b"content-length": [b"4", b"4"]}, MALFORMED),
        ({b"content-length": [b"+4"]}, MALFORMED),
    ],
)
def test_size_that_could_be_read_in_two_ways_is_refused_whatever_the_parser_says(
    noted: Noted, refusal: HttpRefusal
) -> None:
    with pytest.raises(RequestRefused) as refused:
        read_size(noted, "1.1")
    assert refused.value.refusal == refusal


@pytest.mark.parametrize("endless", [b"1;", b"0\r\nX: "], ids=["chunk extension", "trailer"])
def test_what_frames_a_body_may_not_be_endless(server: Serving, endless: bytes) -> None:
    disconnected = server.app.disconnected
    heard = server.converse(CHUNKED + endless, *[b"a" * 8_000] * 20, gap_s=0.0)

    assert statuses(heard) == [400]
    # The application does not wait for it either.
    wait_until(lambda: server.app.disconnected > disconnected)


@pytest.mark.parametrize(("head", "piece"), [(post(100_000_000), b"x" * 65_536), (CHUNKED, chunk(50_000))])
def test_who_sends_on_sees_the_refusal_and_is_not_read(server: Serving, head: bytes, piece: bytes) -> None:
    before = CountingProtocol.received
    with server.connect() as client:
        client.sendall(head)
        flood(client, piece)
        assert statuses(hear(client)) == [413]
    assert CountingProtocol.received - before <= FEW_READS


def test_megabytes_of_headers_are_not_parsed_and_do_not_hold_up_others(server: Serving) -> None:
    requests, parsed = len(server.app.requests), CountingProtocol.parsed
    with server.connect() as hostile:
        hostile.sendall(GET)
        flood(hostile, b"a:b\r\n" * 10_000)
        assert statuses(server.converse(GET + CLOSE + b"\r\n")) == [200]
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
    assert not any(map(is_one_head, (GET, b"GET", GET + b"\r\n" + GET + b"\r\n")))


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/", MOST_BODY_BYTES),
        ("/accounts/login/", MOST_BODY_BYTES),
        ("/ingest/ticks", MOST_TICK_BYTES),
        ("/ingest/ticks/", MOST_TICK_BYTES),
        ("/ingest/ticks/more", MOST_BODY_BYTES),
        ("/admin/instruments/instrument/import/", MOST_IMPORT_BYTES),
        ("/admin/instruments/instrument/process_import/", MOST_BODY_BYTES),
        ("/import/", MOST_BODY_BYTES),
    ],
)
def test_each_path_has_its_limit(path: str, most: int) -> None:
    assert most_bytes(path) == most


def test_a_body_ends_where_it_does_and_is_not_mostly_framing() -> None:
    assert RequestBody(5, MOST_BODY_BYTES).take(b"12345GET / ") == 5
    small, padded = RequestBody(None, MOST_BODY_BYTES), RequestBody(None, MOST_BODY_BYTES)
    for _ in range(10_000):
        small.take(b"1\r\nx\r\n")
        small.received += 1
    for _ in range(3):
        padded.take(b"1;" + b"a" * 16_000)
    assert (small.is_mostly_framing, padded.is_mostly_framing) == (False, True)
