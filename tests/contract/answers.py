"""What all answers have in common."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from httpx import Response

PATHS = (
    "/api/symbols",
    "/api/market/EURUSD",
    "/api/market/EURUSD/quote",
    "/api/market/EURUSD/history",
    "/api/market/EURUSD/ticks",
    "/api/quotes",
    "/api/orderflow/EURUSD",
    "/api/signals",
    "/api/signals/0b7d1a9c-3a5e-4c86-8a43-5f0f5f3f1d77",
    "/api/signals/0b7d1a9c-3a5e-4c86-8a43-5f0f5f3f1d77/proof",
    "/api/signals/ledger",
    "/api/publishers/marta",
    "/api/news",
    "/api/news/calibration",
    "/api/analysis/EURUSD",
    "/api/archive",
    "/api/session",
    "/api/limits",
)
SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
MILLISECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def refusal(response: Response, status: int, code: str, **details: Any) -> str:
    """The message of an error, after its body was found to have the one shape with exactly these details."""
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"] == "application/json"
    assert set(response.json()) == {"error"}
    error: dict[str, Any] = response.json()["error"]
    message, request_id = error.pop("message"), error.pop("request_id")
    assert error == {"code": code, "status": status, **details}
    assert request_id == response.headers["X-Request-Id"]
    assert re.fullmatch(r"req_[a-z2-7]{16}", request_id)
    assert isinstance(message, str)
    assert message.endswith((".", "?"))
    return message


def to_ms(text: str) -> int:
    """Milliseconds of a UTC time such as 2026-11-18 12:00."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)
