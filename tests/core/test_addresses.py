from __future__ import annotations

from typing import Any

import pytest

from core.addresses import is_loopback

HERE: dict[str, Any] = {
    "headers": [(b"host", b"127.0.0.1:8000")],
    "server": ("127.0.0.1", 8000),
    "client": ("127.0.0.1", 51_234),
}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:8000", "127.0.0.2", "[::1]:8000"])
def test_every_name_of_this_machine_is_loopback(host: str) -> None:
    assert is_loopback(HERE | {"headers": [(b"host", host.encode())]})


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"client": ("10.0.0.7", 51_234)},
        {"client": ("", 0)},
        {"client": None},
        {"server": ("10.0.0.5", 8000)},
        {"server": ("0.0.0.0", 8000)},  # noqa: S104 - an address to refuse
        {"server": ("/run/tickwire.sock", None)},
        *(
            {"headers": [(b"host", host)]}
            for host in (b"tickwire.example", b"10.0.0.5:8000", b"127.0.0.1.tickwire.example", b"")
        ),
        {"headers": []},
        {"headers": [(b"host", b"127.0.0.1"), (b"host", b"localhost")]},
        *(
            {"headers": [(b"host", b"127.0.0.1:8000"), (name, value)]}
            for name, value in (
                (b"x-forwarded-for", b"127.0.0.1"),
                (b"forwarded", b"for=127.0.0.1"),
                (b"x-real-ip", b"127.0.0.1"),
                (b"via", b"1.1 proxy"),
            )
        ),
    ],
    ids=str,
)
def test_anything_else_is_not(elsewhere: dict[str, Any]) -> None:
    assert not is_loopback(HERE | elsewhere)
