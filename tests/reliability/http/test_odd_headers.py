"""Row 69: keys in odd, doubled or many headers open nothing, and no value becomes a header of the answer."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.factories import make_account, make_key, make_tier
from tests.patience import PATIENCE_S
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process

END = b"\r\n"
PATH, SHORT, MARK = b"/api/limits", b"/api/symbols", b"Injected"
# What a parser that is too kind makes a line of its own of.
BREAKS = (b"\r\n", b"\n", b"\r", b"%0d%0a", b"\\r\\n", b"\xc4\x8d\xc4\x8a", b"\xe2\x80\xa8", b"\x0b", b"\0")
# Headers whose value an answer repeats, or that a path is built from.
ECHOED = (b"X-Request-Id", b"X-API-Key", b"Origin", b"Accept", b"Access-Control-Request-Headers", b"Cookie")


@pytest.fixture(scope="module")
def key(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> bytes:
    with django_db_blocker.unblock(), embedded_for_module.orm():
        return make_key(make_account(tier=make_tier("roomy", requests_per_minute=100_000))).encode()


@pytest.fixture(scope="module")
def server(
    embedded_for_module: Installation, key: bytes, django_db_blocker: DjangoDbBlocker
) -> Iterator[Process]:
    with django_db_blocker.unblock(), embedded_for_module.web_process() as running:
        yield running


def answers(server: Process, *lines: bytes, target: bytes = PATH) -> bytes:
    """All that comes back on a connection for one request."""
    return said(server, END.join([*begun(target), b"Connection: close", *lines, END]))


def begun(target: bytes) -> list[bytes]:
    return [b"GET " + target + b" HTTP/1.1", b"Host: 127.0.0.1"]


def said(server: Process, requests: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as client:
        client.sendall(requests)
        heard = b""
        try:
            while part := client.recv(65536):
                heard += part
        except ConnectionResetError:
            # It refused without reading all of it, and said so before.
            pass
    return heard


def status_of(answer: bytes) -> int:
    return int(answer[9:12])


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


@pytest.mark.row("69", "none accepted, each answered with 400, 401 or 431")
def test_no_odd_or_duplicated_header_grants_access(server: Process, key: bytes, tell: Tell) -> None:
    statuses = {name: status_of(answers(server, *lines)) for name, lines in odd_lines(key).items()}
    tell(f"accepted {list(statuses.values()).count(200)} of {len(statuses)}: {statuses}")
    assert set(statuses.values()) <= {400, 401, 431}, statuses


@pytest.mark.row("69", "after remembered request heads: none accepted, each answered with 400, 401 or 431")
def test_no_odd_header_grants_access_on_the_short_path(server: Process, key: bytes, tell: Tell) -> None:
    plain = END.join([*begun(SHORT), b"X-API-Key: " + key, END])
    last = b"OPTIONS /api HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    assert statuses_of(said(server, plain * 3 + last)) == [200] * 3 + [204]
    heard = {
        name: statuses_of(said(server, plain * 2 + END.join([*begun(SHORT), *lines, END]) + last))
        for name, lines in odd_lines(key).items()
    }
    tell(f"{sum(each[2] == 200 for each in heard.values())} of {len(heard)} accepted")
    assert {name for name, each in heard.items() if each[:2] != [200] * 2} == set()
    assert {each[2] for each in heard.values()} <= {400, 401, 431}, heard


def statuses_of(heard: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", heard)]


@pytest.mark.row("69", "control: the same key in one plain header is accepted")
@pytest.mark.parametrize("name", [b"X-API-Key", b"x-api-key", b"X-Api-Key"])
def test_control_a_plain_header_grants_access(server: Process, key: bytes, name: bytes) -> None:
    assert status_of(answers(server, name + b": " + key)) == 200


@pytest.mark.row("69", "no response header injected")
def test_no_value_of_a_request_becomes_a_header_of_the_answer(
    server: Process, key: bytes, tell: Tell
) -> None:
    asked = injected = 0
    for line_break in BREAKS:
        tail = line_break + MARK + b": yes"
        requests = [([name + b": a" + tail], PATH) for name in ECHOED]
        requests += [([name + b": a" + tail, b"X-API-Key: " + key], PATH) for name in ECHOED[:1]]
        requests += [([], b"/api/symbols" + tail), ([], b"/api/market/EUR" + tail + b"/quote")]
        requests += [([], b"/docs?next=a" + tail), ([], b"/settings/" + tail)]
        for lines, target in requests:
            asked += 1
            heads = head_lines(answers(server, *lines, target=target))
            injected += any(line.lower().startswith(MARK.lower()) for line in heads)
    tell(f"{injected} of {asked}")
    assert injected == 0


def head_lines(heard: bytes) -> list[bytes]:
    """As the kindest of clients would split them."""
    head = heard.partition(b"\r\n\r\n")[0]
    return head.replace(b"\r", b"\n").split(b"\n")


@pytest.mark.row("69", "an injected header would be seen")
def test_control_an_injected_header_would_be_seen() -> None:
    heard = b"HTTP/1.1 302 Found\r\nLocation: /a\r\nInjected: yes\r\n\r\n"
    assert any(line.startswith(MARK) for line in head_lines(heard))
