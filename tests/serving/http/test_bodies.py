"""How long a body may be, how much of a longer one is read, and that its sender sees why it was refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from serving.http.bounds import MOST_BODY_BYTES, MOST_IMPORT_BYTES, MOST_TICK_BYTES, RequestBody, most_bytes

from .serving import HOST, SOON, CountingProtocol, Serving, flood, hear, serving, statuses

CLOSE = b"Connection: close\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(**SOON) as running:
        yield running


def post(size: int, *lines: bytes, path: bytes = b"/") -> bytes:
    head = b"POST " + path + b" HTTP/1.1\r\nContent-Length: %d\r\n" % size
    return head + HOST + b"".join(lines) + b"\r\n"


def chunk(size: int) -> bytes:
    return b"%x\r\n" % size + b"x" * size + b"\r\n"


CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n"


def test_a_body_of_64_kib_is_read(server: Serving) -> None:
    assert statuses(server.converse(post(MOST_BODY_BYTES, CLOSE), b"x" * MOST_BODY_BYTES)) == [200]
    assert server.app.received[-1] == MOST_BODY_BYTES


def test_ten_mebibytes_of_an_import_are_read_and_one_more_byte_is_413(server: Serving) -> None:
    size, path = 10 * 1024 * 1024, b"/admin/instruments/instrument/import/"

    assert statuses(server.converse(post(size, CLOSE, path=path), b"x" * size)) == [200]
    assert server.app.received[-1] == size
    assert statuses(server.converse(post(size + 1, path=path))) == [413]


def test_a_longer_one_is_413_before_the_application_hears_of_it(server: Serving) -> None:
    known = len(server.app.requests)

    assert statuses(server.converse(post(MOST_BODY_BYTES + 1))) == [413]
    assert len(server.app.requests) == known


def test_chunks_beyond_the_limit_are_413(server: Serving) -> None:
    assert statuses(server.converse(CHUNKED + chunk(MOST_BODY_BYTES), chunk(1) + b"0\r\n\r\n")) == [413]


def test_who_sends_on_sees_the_refusal_and_is_not_read(server: Serving) -> None:
    before = CountingProtocol.received
    with server.connect() as client:
        client.sendall(post(100_000_000))
        flood(client, b"x" * 65_536)
        assert statuses(hear(client)) == [413]
    # Of 100 MB: what the reads before the refusal brought along, as the kernel had taken it in.
    assert CountingProtocol.received - before <= 4 * 64 * 1024


def test_endless_chunks_are_read_to_the_limit_and_no_further(server: Serving) -> None:
    before = CountingProtocol.received
    with server.connect() as client:
        client.sendall(CHUNKED)
        flood(client, chunk(50_000))
        assert statuses(hear(client)) == [413]
    # What came with the byte that was too much had been read already.
    assert CountingProtocol.received - before <= 4 * 64 * 1024


def test_who_waits_to_be_asked_for_a_long_body_is_refused_instead(server: Serving) -> None:
    heard = server.converse(post(MOST_BODY_BYTES + 1, b"Expect: 100-continue\r\n"))

    assert statuses(heard) == [413]


def test_a_connection_goes_on_after_a_short_body_that_nobody_read(server: Serving) -> None:
    heard = server.converse(post(9, path=b"/unread"), b"x" * 9 + post(0, CLOSE))

    assert statuses(heard) == [200, 200]


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/", MOST_BODY_BYTES),
        ("/healthz", MOST_BODY_BYTES),
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


def test_a_part_of_a_body_stops_where_the_body_does() -> None:
    body = RequestBody(5, MOST_BODY_BYTES)

    assert body.take(b"12345GET / ") == 5


def test_small_chunks_are_no_abuse_and_endless_extensions_are() -> None:
    small = RequestBody(None, MOST_BODY_BYTES)
    for _ in range(10_000):
        small.take(b"1\r\nx\r\n")
        small.received += 1
    assert not small.is_mostly_framing

    padded = RequestBody(None, MOST_BODY_BYTES)
    for _ in range(3):
        padded.take(b"1;" + b"a" * 16_000)
    assert padded.is_mostly_framing
