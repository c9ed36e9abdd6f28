"""RSGI, granian's own interface, which is its fastest."""

from __future__ import annotations

import ctypes
import signal
from typing import Any

from .raw import admit, bars, quote

PR_SET_PDEATHSIG = 1
# granian serves in a child, which would sleep for ever if the benchmark and then its parent were killed.
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


async def app(scope: Any, protocol: Any) -> None:
    window = admit(scope.headers.get("x-api-key"))
    if window is None:
        protocol.response_empty(401, [])
        return
    answer = quote if scope.path.endswith("/quote") else bars
    protocol.response_bytes(200, answer.headers(window), answer.body)
