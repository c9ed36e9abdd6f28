"""The WebSocket client that most Node programs use, installed from npm by its lock."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.contract.streams.client import Frame
from tests.patience import PATIENCE_S
from tests.programs.npm import require_npm

DIRECTORY = Path(__file__).parent / "node"


def require_node() -> None:
    require_npm(DIRECTORY)


class NodeSocket:
    def __init__(self, url: str, key: str = "") -> None:
        command = ["node", "client.mjs", url, key]
        self._process = subprocess.Popen(
            command, cwd=DIRECTORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._told: queue.Queue[dict[str, Any]] = queue.Queue()
        self.pings = 0
        threading.Thread(target=self._listen, daemon=True).start()
        assert self._next() == {"open": ""}, "an extension was agreed upon, or the socket did not open"

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            if "ping" in told:
                self.pings += 1
            else:
                self._told.put(told)

    def _next(self) -> dict[str, Any]:
        return self._told.get(timeout=PATIENCE_S)

    def send(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def hear(self) -> Frame:
        told = self._next()
        assert told.get("isBinary") is False, told
        frame: Frame = json.loads(told["heard"])
        return frame

    def closed(self) -> tuple[int, str]:
        code, reason = self._next()["closed"]
        self.end()
        return code, reason

    def leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        while "closed" not in (told := self._next()):
            pass
        # Whoever closes like this is answered in kind.
        assert told["closed"] == [1005, ""]

    def end(self) -> None:
        """And wait for the process, whatever state it is in."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
