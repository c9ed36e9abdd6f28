"""The WebSocket client that most Node programs use, installed from npm by its lock."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.contract.streams.client import HEARD_WITHIN_S, Frame

DIRECTORY = Path(__file__).parent / "node"
INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
INSTALLED_WITHIN_S = 120.0
NO_NODE = "Node is missing: install nodejs and npm (`apt-get install nodejs npm` as root), then try again."


def require_node() -> None:
    """With the client of the lock; without Node a test is skipped, but CI fails."""
    if not shutil.which("node") or not shutil.which("npm"):
        if os.environ.get("CI"):
            raise RuntimeError(NO_NODE)
        pytest.skip(NO_NODE)
    installed, lock = DIRECTORY / "node_modules/.package-lock.json", DIRECTORY / "package-lock.json"
    if installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime:
        return
    done = subprocess.run(INSTALL, cwd=DIRECTORY, timeout=INSTALLED_WITHIN_S, capture_output=True, text=True)
    assert done.returncode == 0, f"The client could not be installed from npm:\n{done.stderr[-2000:]}"


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
        return self._told.get(timeout=HEARD_WITHIN_S)

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
