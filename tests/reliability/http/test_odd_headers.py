"""Row 69: keys in odd, doubled or many headers open nothing, and no value becomes a header of the answer."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.patience import PATIENCE_S
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process

# The first takes the ordinary path, the second one the short path once its head is known.
PATHS, MARK = (b"/api/limits", b"/api/symbols"), b"Injected"
LAST = b"OPTIONS /api HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
# What a parser that is too kind makes a line of its own of.
BREAKS = (b"\r\n", b"\n", b"\r", b"%0d%0a", b"\\r\\n", b"\xc4\x8d\xc4\x8a", b"\xe2\x80\xa8", b"\x0b", b"\0")
# Headers whose value an answer repeats, or that a path is built from.
ECHOED = (b"X-Request-Id", b"X-API-Key", b"Origin", b"Accept", b"Access-Control-Request-Headers", b"Cookie")


@pytest.fixture(scope="module")
def key(embedded_for_module: Installation) -> bytes:
    return embedded_for_module.make_key(requests_per_minute=100_000).encode()


@pytest.fixture(scope="module")
def server(embedded_for_module: Installation, key: bytes) -> Iterator[Process]:
    with embedded_for_module.web_process() as running:
        yield running


def get(target: bytes, *lines: bytes) -> bytes:
    return b"\r\n".join([b"GET " + target + b" HTTP/1.1", b"Host: 127.0.0.1", *lines, b"", b""])


def said(server: Process, requests: bytes) -> bytes:
    """All that comes back, until the server closes."""
    heard = b""
    # One that refuses without reading all of it has said so before.
    with (
        socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as client,
        suppress(ConnectionResetError),
    ):
        client.sendall(requests)
        while part := client.recv(65536):
            heard += part
    return heard


def odd_lines(key: bytes) -> dict[str, list[bytes]]:
    valid = b"X-API-Key: " + key
    wrong = b"X-API-Key: tw_live_wrong"
    return {
        "underscores": [b"X_API_Key: " + key],
        "one underscore": [b"X-API_Key: " + key],
        "a dot": [b"X.API.Key: " + key],
        "twice the same": [valid, b"x-api-key: " + key],
        "valid, then wrong": [valid, wrong],
        "wrong, then valid": [wrong, valid],
        "valid and empty": [valid, b"X-API-Key:"],
        "a list": [valid + b", " + key],
        "valid and with underscores": [wrong, b"X_API_Key: " + key],
        "a space before the colon": [b"X-API-Key : " + key],
        "folded": [b"X-API-Key:", b" " + key],
        "500 duplicates": [valid] * 500,
        "500 others": [b"X-Other: 1"] * 500 + [valid],
        "as a bearer": [b"Authorization: Bearer " + key],
        "as a cookie": [b"Cookie: X-API-Key=" + key],
    }


@pytest.mark.row("69", "after remembered request heads or not, each is answered with 400, 401 or 431")
@pytest.mark.parametrize("path", PATHS)
def test_no_odd_or_duplicated_header_grants_access(
    server: Process, key: bytes, path: bytes, tell: Tell
) -> None:
    plain = get(path, b"X-API-Key: " + key)

    def statuses(requests: bytes) -> list[int]:
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", said(server, requests + LAST))]

    # The control: the same key in a plain header, in whatever case.
    assert statuses(plain * 2 + plain.replace(b"X-API-Key", b"x-api-key")) == [200] * 3 + [204]
    heard = {name: statuses(plain * 2 + get(path, *lines)) for name, lines in odd_lines(key).items()}
    tell(f"{sum(each[2] == 200 for each in heard.values())} of {len(heard)} accepted")
    assert {name for name, each in heard.items() if each[:2] != [200] * 2} == set()
    assert {each[2] for each in heard.values()} <= {400, 401, 431}, heard


@pytest.mark.row("69", "no response header injected")
def test_no_value_of_a_request_becomes_a_header_of_the_answer(
    server: Process, key: bytes, tell: Tell
) -> None:
    asked = injected = 0
    for tail in (line_break + MARK + b": yes" for line_break in BREAKS):
        requests = [(PATHS[0], [name + b": a" + tail]) for name in ECHOED]
        requests += [(PATHS[0], [ECHOED[0] + b": a" + tail, b"X-API-Key: " + key])]
        targets = (b"/api/symbols", b"/docs?next=a", b"/settings/")
        requests += [(target + tail, []) for target in targets]
        requests += [(b"/api/market/EUR" + tail + b"/quote", [])]
        for target, lines in requests:
            asked += 1
            injected += is_injected(said(server, get(target, b"Connection: close", *lines)))
    tell(f"{injected} of {asked}")
    assert injected == 0
    # The control: one would be seen.
    assert is_injected(b"HTTP/1.1 302 Found\r\nLocation: /a\r\nInjected: yes\r\n\r\n")


def is_injected(heard: bytes) -> bool:
    """To the kindest of clients."""
    head = heard.partition(b"\r\n\r\n")[0].replace(b"\r", b"\n")
    return any(line.lower().startswith(MARK.lower()) for line in head.split(b"\n"))
