from __future__ import annotations

from typing import Any

import pytest
from django.test import RequestFactory

from core.addresses import is_loopback, socket_is_loopback

HERE: dict[str, Any] = {"SERVER_NAME": "127.0.0.1", "REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "127.0.0.1:8000"}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:8000", "127.0.0.2", "[::1]:8000"])
def test_every_name_of_this_machine_is_loopback(host: str) -> None:
    assert is_loopback(RequestFactory().get("/", **HERE | {"HTTP_HOST": host}))
    assert socket_is_loopback(SOCKET_HERE | {"headers": [(b"host", host.encode())]})


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"REMOTE_ADDR": "10.0.0.7"},
        {"REMOTE_ADDR": ""},
        {"SERVER_NAME": "10.0.0.5"},
        {"SERVER_NAME": "0.0.0.0"},  # noqa: S104 - an address to refuse
        {"HTTP_HOST": "tickwire.example"},
        {"HTTP_HOST": "10.0.0.5:8000"},
        {"HTTP_HOST": "127.0.0.1.tickwire.example"},
        {"HTTP_HOST": ""},
        {"HTTP_X_FORWARDED_FOR": "127.0.0.1"},
        {"HTTP_FORWARDED": "for=127.0.0.1"},
        {"HTTP_X_REAL_IP": "127.0.0.1"},
        {"HTTP_VIA": "1.1 proxy"},
    ],
    ids=str,
)
def test_anything_else_is_not(elsewhere: dict[str, Any]) -> None:
    assert not is_loopback(RequestFactory().get("/", **HERE | elsewhere))


SOCKET_HERE: dict[str, Any] = {
    "type": "websocket",
    "path": "/ws/market",
    "headers": [(b"host", b"127.0.0.1:8000")],
    "server": ("127.0.0.1", 8000),
    "client": ("127.0.0.1", 51_234),
}


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"client": ("10.0.0.7", 51_234)},
        {"client": None},
        {"server": ("10.0.0.5", 8000)},
        {"headers": [(b"host", b"tickwire.example")]},
        {"headers": [(b"host", b"127.0.0.1:8000"), (b"x-forwarded-for", b"127.0.0.1")]},
    ],
    ids=str,
)
def test_any_other_socket_is_not(elsewhere: dict[str, Any]) -> None:
    assert not socket_is_loopback(SOCKET_HERE | elsewhere)
