"""What a socket says and is told."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from accounts.exceptions import ApiError, RetryLater
from accounts.plain_json import encode

from .refusals import AuthTimeout, Flood, InvalidMessage

MAX_ID_LENGTH = 64
Echo = dict[str, int | str]


def frame(kind: str, now_ms: int, echo: Echo, **fields: Any) -> str:
    return encode({"type": kind, **fields, **echo, "time": now_ms}).decode()


def error_frame(refusal: ApiError, now_ms: int, echo: Echo, *, is_fatal: bool) -> str:
    wait_s = refusal.headers.get("Retry-After")
    details = {
        "code": refusal.code,
        "message": refusal.message,
        "status": refusal.status_code,
        "max": refusal.max,
        "retry_after": None if wait_s is None else int(wait_s),
    }
    told = {name: value for name, value in details.items() if value is not None}
    can_retry = refusal.status_code == 500 or isinstance(refusal, RetryLater | AuthTimeout | Flood)
    return frame("error", now_ms, echo, error=told, fatal=is_fatal, retry=can_retry)


def decoded(value: Raw) -> Any:
    """None for what was let through unread: a number out of all range, or bytes that are no text."""
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def take_id(message: list[Raw] | dict[str, Raw]) -> Echo:
    """The client's own name for the message, to be sent back; taken out of it."""
    if isinstance(message, list) or "id" not in message:
        return {}
    sent = message.pop("id")
    if bytes(sent) == b"null":
        return {}
    sent = decoded(sent)
    if type(sent) is int or (isinstance(sent, str) and len(sent) <= MAX_ID_LENGTH):
        return {"id": sent}
    raise InvalidMessage(f"id is a whole number or a text of {MAX_ID_LENGTH} characters at most.")


def read_auth(message: dict[str, Raw]) -> str:
    if decoded(message["action"]) != "auth":
        raise InvalidMessage('The only action is "auth"; ticks are sent without one.')
    key = decoded(message.get("key", Raw(b"null")))
    if not isinstance(key, str):
        raise InvalidMessage("Send your ingest key as key.")
    return key
