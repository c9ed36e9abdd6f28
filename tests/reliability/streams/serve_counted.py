"""`manage.py serve`, but each frame that goes straight to a socket's number is checked first: is it the very
socket that the connection was opened with? COUNTS names the file that tells; NOTICE=0 leaves out the notice
that a connection is over, as a control."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import django

django.setup()

from django.core.management import execute_from_command_line  # noqa: E402

from market.streams.hub import delivery, hub  # noqa: E402
from market.streams.hub.delivery import FlushPlan, UnsentTail  # noqa: E402
from market.streams.hub.subscribers import EncodedGroup, Subscriber  # noqa: E402
from serving.server import UVICORN_OPTIONS  # noqa: E402
from serving.websocket.protocol import WebSocketProtocol  # noqa: E402

TELL_EVERY_S = 0.1
NOWHERE = os.open(os.devnull, os.O_WRONLY)
counts = {"direct": 0, "wrong": 0}
send_to_all, send_alone = delivery.send_to_all, FlushPlan.send_alone


class KnownSocket(WebSocketProtocol):
    """Remembers which socket is its own."""

    inode = 0

    def connection_made(self, transport: Any) -> None:
        self.inode = inode_of(transport.get_extra_info("socket").fileno())
        super().connection_made(transport)


def inode_of(descriptor: int) -> int:
    try:
        return os.fstat(descriptor).st_ino
    except OSError:
        return -1


def checked(subscribers: Iterable[Subscriber], descriptors: Iterable[int]) -> Iterator[int]:
    """Where to send instead: what is astray goes nowhere, because the number may be a file's by now."""
    for subscriber, descriptor in zip(subscribers, descriptors, strict=True):
        is_wrong = inode_of(descriptor) != subscriber.connection.inode  # type: ignore[attr-defined]
        counts["direct"] += 1
        counts["wrong"] += is_wrong
        yield NOWHERE if is_wrong else descriptor


def checked_send_to_all(encoded: EncodedGroup, data: bytes) -> list[UnsentTail]:
    descriptors = array("i", checked(encoded.direct, encoded.descriptors))
    return send_to_all(EncodedGroup(encoded.direct, descriptors, encoded.others), data)


def checked_send_alone(self: FlushPlan) -> list[UnsentTail]:
    alone = (next(iter(group.subscribers)) for group in self.alone)
    return send_alone(self._replace(descriptors=[*checked(alone, self.descriptors)]))


def tell(place: Path) -> None:
    while True:
        made = place.with_suffix(".new")
        made.write_text(json.dumps(counts))
        made.replace(place)
        time.sleep(TELL_EVERY_S)


def main() -> None:
    UVICORN_OPTIONS["ws"] = KnownSocket
    hub.send_to_all = checked_send_to_all  # type: ignore[attr-defined]
    FlushPlan.send_alone = checked_send_alone  # type: ignore[method-assign]
    if os.environ.get("NOTICE") == "0":
        hub.Hub.leave = lambda self, subscriber: None  # type: ignore[method-assign]
    threading.Thread(target=tell, args=(Path(os.environ["COUNTS"]),), daemon=True).start()
    execute_from_command_line(["manage.py", "serve", *sys.argv[1:]])


if __name__ == "__main__":
    main()
