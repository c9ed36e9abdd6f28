"""What is compared must be the same: before anything is measured, all answer what ours answers, on its short
path."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import datetime
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.nightly.benchmarks.processes import Peer

from .cases import OURS, QUOTE, RAW, RECORDED, Case

TIMES = ("time", "timestamp")
# A server listens before it has loaded what it answers from.
START_PATIENCE_S = 60
TOGETHER = 8
# Of struct tcp_info in linux/tcp.h: tcpi_data_segs_in.
SEGMENTS_AT, SEGMENTS_END = 152, 156


class Said(NamedTuple):
    status: int
    body: bytes
    headers: HTTPMessage


def ask(peer: Peer, path: str, key: str) -> Said:
    asking = HTTPConnection("127.0.0.1", peer.port, timeout=START_PATIENCE_S)
    with peer.awake(), closing(asking):
        asking.request("GET", path, headers={"X-API-Key": key})
        response = asking.getresponse()
        return Said(response.status, response.read(), response.headers)


def record(ours: Peer, key: str, directory: Path) -> None:
    """What ours sends, for those who send it again."""
    for case in RECORDED:
        said = ask(ours, case.path, key)
        headers = [(name.lower(), value) for name, value in said.headers.items()]
        (directory / f"{case.name}.json").write_bytes(said.body)
        (directory / f"{case.name}.headers.json").write_bytes(msgspec.json.encode(headers))


def check_agreement(peers: Sequence[Peer], cases: Iterable[Case], key: str) -> None:
    ours, *others = peers
    for case in cases:
        expected = ask(ours, case.path, key)
        for peer in others:
            if peer.name in case.servers:
                check_same(peer.name, case, expected, ask(peer, case.path, key))
    for peer in peers:
        if ask(peer, QUOTE.path, "nobody").status < 400:
            raise RuntimeError(f"{peer.name} answers without a valid key.")
    with ours.awake():
        if not takes_the_short_path(ours.port, QUOTE.path, key):
            raise RuntimeError("Ours does not answer on the short path, which is what is measured.")


def check_same(name: str, case: Case, expected: Said, said: Said) -> None:
    if name in RAW and said.body != expected.body:
        raise RuntimeError(f"{name} answers {case.path} with other bytes than ours.")
    if meaning(msgspec.json.decode(said.body)) != meaning(msgspec.json.decode(expected.body)):
        raise RuntimeError(f"{name} answers {case.path} with another body than ours.")
    theirs, ours = ({header.lower() for header in each.headers} for each in (said, expected))
    if (name.startswith(OURS) or name in RAW) and ours - theirs:
        raise RuntimeError(f"{name} answers {case.path} without {', '.join(sorted(ours - theirs))}.")


def meaning(body: Any) -> Any:
    """Times may be written with more or fewer digits of a second; everything else must be equal."""
    if isinstance(body, list):
        return [meaning(item) for item in body]
    if isinstance(body, dict):
        return {
            name: datetime.fromisoformat(value) if name in TIMES else meaning(value)
            for name, value in body.items()
        }
    return body


def takes_the_short_path(port: int, path: str, key: str) -> bool:
    """No answer shows it, but known requests that come together are answered in one write, and the ordinary
    path writes each by itself."""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {key}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        # The first makes the key known, and the second the head.
        for _ in range(2):
            exchange(connection, request, 1)
        before = segments(connection)
        exchange(connection, request, TOGETHER)
        return segments(connection) - before == 1


def exchange(connection: socket.socket, request: bytes, count: int) -> None:
    connection.sendall(request * count)
    answers = b""
    while answers.count(b"\r\n\r\n") < count or not answers.endswith(b"}"):
        part = connection.recv(1 << 20)
        if not part:
            raise RuntimeError(f"The connection ended after {answers[-200:]!r}.")
        answers += part


def segments(connection: socket.socket) -> int:
    """With data, that have come in."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, SEGMENTS_END)
    (count,) = struct.unpack("I", info[SEGMENTS_AT:SEGMENTS_END])
    return int(count)
