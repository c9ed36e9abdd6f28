"""What stands between the sockets and the application: uvicorn's protocols with our bounds."""

from __future__ import annotations

from typing import Any

from market.streams.wire import UVICORN as WIRE

from .protocol import HttpProtocol

UVICORN: dict[str, Any] = WIRE | {"http": HttpProtocol}
