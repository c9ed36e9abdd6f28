"""What may go wrong, as the service says it."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class ApiError(Exception):
    """A request was refused."""

    def __init__(self, status: int, error: Json, retry_after: float | None = None) -> None:
        super().__init__(error.get("message") or f"The service answered {status}.")
        self.status = status
        self.code: str = error.get("code", "")
        self.field: str | None = error.get("field")
        self.allowed: list[Any] | None = error.get("allowed")
        self.request_id: str | None = error.get("request_id")
        self.retry_after = retry_after
        """Seconds after which the same request would succeed."""


class StreamError(Exception):
    """A stream ended and connecting again would not help."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code: str = error["code"]
        self.status: int = error["status"]
