"""What Python peers share that send what ours sent: its bytes, the key with its window, and our headers."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from pathlib import Path

import msgspec

from core.contract.errors import new_request_id

LIMIT, WINDOW_S = 1_000_000_000, 60.0
TIER = "boundless"
# They differ from answer to answer. The others, and their values, are those that ours sent.
COUNTED = ("x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit")
FRAMING = ("date", "content-length", "connection")

Headers = list[tuple[str, str]]
Window = deque[float]
windows: dict[str, Window] = {os.environ["BENCH_KEY"]: deque()}


def admit(key: str | None) -> Window | None:
    """The window of a key, in which the request is counted."""
    window = windows.get(key or "")
    if window is not None:
        now = time.monotonic()
        window.append(now)
        while window[0] <= now - WINDOW_S:
            window.popleft()
    return window


class Recorded:
    """An answer of ours."""

    def __init__(self, name: str) -> None:
        directory = Path(os.environ["BENCH_ANSWERS"])
        self.body = (directory / f"{name}.json").read_bytes()
        sent = msgspec.json.decode((directory / f"{name}.headers.json").read_bytes(), type=Headers)
        self._fixed = [(header, value) for header, value in sent if header not in (*COUNTED, *FRAMING)]

    def headers(self, window: Window) -> Headers:
        left = LIMIT - len(window)
        frees_in = window[0] + WINDOW_S - window[-1]
        return [
            *self._fixed,
            ("x-request-id", new_request_id()),
            ("x-ratelimit-remaining", str(left)),
            ("x-ratelimit-reset", str(math.ceil(time.time() + frees_in))),
            ("ratelimit", f'"{TIER}";r={left};t={math.ceil(frees_in)}'),
        ]


quote, bars = Recorded("quote"), Recorded("500 bars")
