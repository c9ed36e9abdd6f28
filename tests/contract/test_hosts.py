"""Requests that name somebody else as their host."""

from __future__ import annotations

import pytest

from tests.client import Api, Server

from .raw import exchange, raw_get

FORGED = b"forged.example"


@pytest.fixture
def line(shared: Api) -> bytes:
    return b"X-API-Key: " + shared.key.encode()


@pytest.mark.parametrize(
    "host",
    [
        pytest.param(b"Host: " + FORGED, id="forged"),
        pytest.param(b"Host: 127.0.0.1." + FORGED, id="forged suffix"),
        pytest.param(b"Host: 127.0.0.1@" + FORGED, id="user part"),
        pytest.param(b"Host: 127.0.0.1\r\nHost: " + FORGED, id="two"),
        pytest.param(b"Host: 127.0.0.1\r\nHost: 127.0.0.1", id="twice the same"),
        pytest.param(b"Host: 127.0.0.1/" + FORGED, id="path"),
        pytest.param(b"Host:", id="empty"),
        pytest.param(None, id="none"),
    ],
)
def test_host_that_is_none_of_ours_is_400(shared_server: Server, line: bytes, host: bytes | None) -> None:
    answer = raw_get(shared_server, b"/api/symbols", line, host=host)

    assert (answer.status, answer.code) == (400, "invalid_parameter")
    assert FORGED.decode() not in answer.text


def test_forged_host_of_a_page_is_the_same_refusal(shared_server: Server) -> None:
    answer = raw_get(shared_server, b"/nothing", host=b"Host: " + FORGED)

    assert (answer.status, answer.code) == (400, "invalid_parameter")
    assert FORGED.decode() not in answer.text


@pytest.mark.parametrize(
    "host", [b"Host: localhost", b"Host: 127.0.0.1:8000", b"Host: [::1]:80", b"host: LOCALHOST"]
)
def test_host_of_ours_is_served(shared_server: Server, line: bytes, host: bytes) -> None:
    assert raw_get(shared_server, b"/api/symbols", line, host=host).status == 200


def test_forged_host_without_a_key_is_401(shared_server: Server) -> None:
    assert raw_get(shared_server, b"/api/symbols", host=b"Host: " + FORGED).status == 401


@pytest.mark.parametrize(
    "header", [b"X-Forwarded-Host", b"X-Host", b"Forwarded", b"X-Original-URL", b"X-Rewrite-URL"]
)
def test_forged_host_of_a_proxy_comes_back_nowhere(shared_server: Server, line: bytes, header: bytes) -> None:
    answer = raw_get(shared_server, b"/api/nothing", line, header + b": https://" + FORGED + b"/api/symbols")

    assert (answer.status, answer.code) == (404, "not_found")
    assert FORGED.decode() not in answer.text


@pytest.mark.parametrize("target", [b"http://forged.example/api/symbols", b"//forged.example/api/symbols"])
def test_forged_host_in_the_target_comes_back_nowhere(
    shared_server: Server, line: bytes, target: bytes
) -> None:
    assert FORGED.decode() not in raw_get(shared_server, target, line).text


def test_http_1_0_needs_no_host(shared_server: Server, line: bytes) -> None:
    assert exchange(shared_server, b"GET /api/symbols HTTP/1.0\r\n" + line + b"\r\n\r\n").status == 200
