"""A service that says and does what a test wants: each connection is a script of its own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Queue
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from tests.patience import PATIENCE_S

Frame = dict[str, Any]
Script = Callable[[ServerConnection], None]


class Service:
    """The first scripts are of one connection each, the last is of all others."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = list(scripts)
        self._asked: Queue[Frame] = Queue()
        self.url = ""
        self.agent = ""
        """How the newest connection named itself."""
        self.pages = list[Frame]()
        """What REST answers, one after the other; then it knows nothing."""
        self.requests = list[tuple[str, dict[str, str]]]()

    def asked(self) -> Frame:
        """What the next subscribe said."""
        return self._asked.get(timeout=PATIENCE_S)

    def rest(self, connection: ServerConnection, request: Request) -> Response | None:
        address = urlsplit(request.path)
        if not address.path.startswith("/api/"):
            return None
        self.requests.append((address.path, dict(parse_qsl(address.query))))
        if self.pages:
            return connection.respond(200, json.dumps(self.pages.pop(0)))
        error = {"code": "not_found", "message": "There is nothing.", "status": 404}
        return connection.respond(404, json.dumps({"error": error}))

    def take(self, connection: ServerConnection) -> None:
        request = connection.request
        self.agent = request.headers.get("User-Agent", "") if request else ""
        self._asked.put(json.loads(connection.recv(PATIENCE_S)))
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        script(connection)


@contextmanager
def serving(*scripts: Script) -> Iterator[Service]:
    service = Service(*scripts)
    with serve(service.take, "127.0.0.1", 0, compression=None, process_request=service.rest) as server:
        service.url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield service
        server.shutdown()
        thread.join(PATIENCE_S)


def says(*frames: Frame, then: int | None = None) -> Script:
    """These, and then it closes with the code, or goes on without a word."""

    def script(connection: ServerConnection) -> None:
        for frame in frames:
            connection.send(json.dumps(frame))
        if then is not None:
            connection.close(then)
            return
        # Until the client has had enough.
        for _ in connection:
            pass

    return script


def error(code: str, *, retry: bool) -> Frame:
    refusal = {"code": code, "message": f"{code}.", "status": 429}
    return {"type": "error", "error": refusal, "fatal": True, "retry": retry, "time": 1}


def reply(*symbols: str, **more: Any) -> Frame:
    return {
        "type": "subscribed",
        "stream": "market",
        "symbols": list(symbols),
        "rejected": [],
        "time": 1,
        **more,
    }
