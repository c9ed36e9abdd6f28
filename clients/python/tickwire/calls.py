"""The paths of REST: how a call becomes a request, and an answer a value or an error. It does no I/O."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar
from urllib.parse import quote as quoted

import httpx

from .errors import ApiError, Json

R = TypeVar("R")
Value = str | int | None

LOCAL = "http://127.0.0.1:8000"
LONGEST_WAIT_S = 60.0


class Calls(ABC, Generic[R]):
    """R is an answer, or something that can be awaited for it."""

    def __init__(self, api_key: str | None, url: str | None, timeout: float, retries: int) -> None:
        self.api_key = api_key or os.environ.get("TICKWIRE_API_KEY", "")
        if not self.api_key:
            raise ValueError("An API key is needed: pass api_key, or set TICKWIRE_API_KEY.")
        self.url = (url or os.environ.get("TICKWIRE_URL") or LOCAL).rstrip("/")
        self.timeout, self.retries = timeout, retries

    @abstractmethod
    def get(self, path: str, **parameters: Value) -> R:
        """GET /api/{path}."""

    def symbols(self, *, expand: Iterable[str] = ()) -> R:
        return self.get("symbols", expand=",".join(expand) or None)

    def quote(self, symbol: str) -> R:
        return self.get(f"market/{_part(symbol)}/quote")

    def market(self, symbol: str, *, timeframe: str = "1h", bars: int = 100, closed_only: bool = False) -> R:
        closed = "true" if closed_only else None
        return self.get(f"market/{_part(symbol)}", timeframe=timeframe, bars=bars, closed_only=closed)

    def signals(
        self,
        *,
        status: str = "active",
        symbol: str | None = None,
        user: str | None = None,
        limit: int = 50,
    ) -> R:
        return self.get("signals", status=status, symbol=symbol, user=user, limit=limit)

    def signal(self, signal_id: str) -> R:
        return self.get(f"signals/{_part(signal_id)}")

    def proof(self, signal_id: str) -> R:
        return self.get(f"signals/{_part(signal_id)}/proof")

    def ledger(self, **parameters: Value) -> R:
        return self.get("signals/ledger", **parameters)

    def publisher(self, user: str) -> R:
        return self.get(f"publishers/{_part(user)}")

    def news(self, *, category: Iterable[str] = (), limit: int = 20, expand: Iterable[str] = ()) -> R:
        chosen = {"category": ",".join(category) or None, "expand": ",".join(expand) or None}
        return self.get("news", limit=limit, **chosen)

    def calibration(self) -> R:
        return self.get("news/calibration")

    def analysis(self, symbol: str, *, model: str | None = None) -> R:
        return self.get(f"analysis/{_part(symbol)}", model=model)

    def session(self) -> R:
        return self.get("session")

    def limits(self) -> R:
        return self.get("limits")

    def _options(self) -> Json:
        headers = {"X-API-Key": self.api_key, "User-Agent": "tickwire-python/0.1.0"}
        return {"base_url": f"{self.url}/api/", "headers": headers, "timeout": self.timeout}


def given(parameters: dict[str, Value]) -> dict[str, str | int]:
    return {name: value for name, value in parameters.items() if value is not None}


def read(answer: httpx.Response) -> Json:
    if answer.is_success:
        body: Json = answer.json()
        return body
    try:
        error = answer.json()["error"]
    except (ValueError, KeyError, TypeError):
        error = None
    if not isinstance(error, dict):
        # Not from the service but from something in front of it.
        error = {}
    waits = answer.headers.get("Retry-After", "")
    raise ApiError(answer.status_code, error, float(waits) if waits.isdigit() else None)


def wait_before_again(failure: Exception, attempt: int) -> float | None:
    """Seconds to wait, or None where asking again would not help."""
    if isinstance(failure, ApiError):
        is_passing = failure.code in ("rate_limit_exceeded", "overloaded", "quote_unavailable")
        wait_s = failure.retry_after
        return wait_s if is_passing and wait_s is not None and wait_s <= LONGEST_WAIT_S else None
    return 0.25 * 2**attempt if isinstance(failure, httpx.TransportError) else None


def _part(text: str) -> str:
    return quoted(text, safe="")
