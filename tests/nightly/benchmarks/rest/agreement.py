"""Whether all answer the same before anything is measured: who answers something else is not compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import datetime
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.nightly.benchmarks.servers import Peer

from .cases import RECORDED, Case
from .names import NGINX, OURS, RAW

TIMES = ("time", "timestamp")
# A server listens before it has loaded what it answers from.
START_PATIENCE_S = 60


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
        if peer.name != NGINX and ask(peer, RECORDED[0].path, "nobody").status < 400:
            raise RuntimeError(f"{peer.name} answers without a valid key.")


def check_same(name: str, case: Case, expected: Said, said: Said) -> None:
    if name in RAW and said.body != expected.body:
        raise RuntimeError(f"{name} answers {case.path} with other bytes than ours.")
    if meaning(msgspec.json.decode(said.body)) != meaning(msgspec.json.decode(expected.body)):
        raise RuntimeError(f"{name} answers {case.path} with another body than ours.")
    if name.startswith(OURS) or (name in RAW and name != NGINX):
        lacking = {header.lower() for header in expected.headers} - {
            header.lower() for header in said.headers
        }
        if lacking:
            raise RuntimeError(f"{name} answers {case.path} without {', '.join(sorted(lacking))}.")


def meaning(body: Any) -> Any:
    """Times may be written with more or fewer digits of a second; everything else must be equal."""
    match body:
        case dict():
            return {
                name: datetime.fromisoformat(value) if name in TIMES else meaning(value)
                for name, value in body.items()
            }
        case list():
            return [meaning(item) for item in body]
        case _:
            return body
