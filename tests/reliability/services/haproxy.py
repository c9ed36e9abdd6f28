"""A real haproxy before web processes, which asks each of them whether it is ready."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.patience import PATIENCE_S, wait_until
from tests.programs.debian import require_debian
from tests.programs.services import free_port

from .processes import logged

# A slow answer is an answer: who is out says 503, or refuses the connection. Nothing is tried twice: that
# would hide what a restart breaks.
CONFIGURATION = """
global
    maxconn 4000
defaults
    mode http
    timeout connect 300s
    timeout client 300s
    timeout server 300s
    timeout tunnel 1h
    timeout check 300s
    retries 0
frontend everybody
    bind 127.0.0.1:{port}
    stats enable
    stats uri /haproxy
    default_backend tickwire
backend tickwire
    balance leastconn
    option httpchk GET /readyz
    default-server inter 200ms fall 1 rise 1
{servers}
"""


@contextmanager
def haproxy(directory: Path, ports: Sequence[int]) -> Iterator[int]:
    """The port on which everybody comes in."""
    program, port, path = require_debian("haproxy"), free_port(), directory / "haproxy.cfg"
    servers = "\n".join(f"    server web{number} 127.0.0.1:{number} check" for number in ports)
    path.write_text(CONFIGURATION.format(port=port, servers=servers))
    with logged([program, "-f", str(path), "-db"], directory / "haproxy.log"):
        for server in ports:
            wait_until(lambda server=server: is_up(port, server))  # type: ignore[misc]
        yield port


def is_up(port: int, server: int) -> bool:
    """Whether this server gets requests, as haproxy sees it."""
    return row_of(port, server).get("status") == "UP"


def under_way(port: int, server: int) -> int:
    """How many connections haproxy has to it."""
    return int(row_of(port, server).get("scur", 0))


def row_of(port: int, server: int) -> dict[str, str]:
    """What haproxy says of this server; nothing before it listens itself."""
    try:
        lines = httpx.get(f"http://127.0.0.1:{port}/haproxy;csv", timeout=PATIENCE_S).text.splitlines()
    except httpx.TransportError:
        return {}
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=False)) for line in lines[1:]]
    return next((row for row in rows if row["svname"] == f"web{server}"), {})
