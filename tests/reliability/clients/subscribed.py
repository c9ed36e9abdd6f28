"""A stream that a test reads itself, frame by frame."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.patience import PATIENCE_S


@contextmanager
def subscribed(
    port: int, key: str, symbols: Sequence[str], path: str = "/ws/market", **fields: Any
) -> Iterator[tuple[Connection, dict[str, Any]]]:
    """With the answer to its subscribe, which is to be taken."""
    with asking(port, key, symbols, path, **fields) as socket:
        reply = json.loads(socket.recv(PATIENCE_S))
        assert reply["type"] == "subscribed", reply
        yield socket, reply


@contextmanager
def asking(
    port: int, key: str, symbols: Sequence[str], path: str = "/ws/market", **fields: Any
) -> Iterator[Connection]:
    url = f"ws://127.0.0.1:{port}{path}"
    with connect(url, compression=None, ping_interval=None, open_timeout=PATIENCE_S) as socket:
        message = {"action": "subscribe", "symbols": list(symbols), "api_key": key}
        socket.send(json.dumps(message | fields))
        yield socket
