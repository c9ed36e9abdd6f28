"""What a stream refuses, how it says so, and with which code a socket closes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from .messages import Milliseconds

Code = Literal[
    "invalid_message",
    "invalid_api_key",
    "https_required",
    "subscribe_timeout",
    "taken_over",
    "stream_closed",
    "stream_limit_exceeded",
    "too_many_messages",
    "slow_consumer",
    "internal_error",
]
Id = int | str


class StreamRefusal(msgspec.Struct, frozen=True):
    status: int
    """The status that REST would send."""
    close: int | None
    """None: the socket stays open."""
    can_retry: bool
    """Whether connecting again as before may succeed."""
    message: str


REFUSALS: dict[Code, StreamRefusal] = {
    "invalid_message": StreamRefusal(400, None, False, "The message cannot be understood."),
    "invalid_api_key": StreamRefusal(
        401,
        4401,
        False,
        "The API key is missing or not valid. It is sent as api_key in the message, or in the X-API-Key"
        " header of the handshake.",
    ),
    "https_required": StreamRefusal(
        403,
        4403,
        False,
        "This key was sent without TLS and may have been read. Use wss://, and issue a new key.",
    ),
    "subscribe_timeout": StreamRefusal(
        408, 4408, True, "No valid subscribe came within 10 seconds. Connect again and send it first."
    ),
    "taken_over": StreamRefusal(
        409, 4409, False, "Another connection of your account has taken this stream over."
    ),
    # Final like a takeover, or the client would come back by itself and have to be closed again.
    "stream_closed": StreamRefusal(
        410, 4410, False, "This stream was closed in the settings panel of your account."
    ),
    "stream_limit_exceeded": StreamRefusal(
        429,
        4429,
        True,
        "Your tier allows no more open streams. Close one, or set takeover when you subscribe.",
    ),
    "too_many_messages": StreamRefusal(
        429, 4413, True, "Send at most 10 messages a second, 20 at once. One message can name 200 symbols."
    ),
    "slow_consumer": StreamRefusal(
        408,
        4430,
        True,
        "You read more slowly than frames arrive. Subscribe to less, or request the feature latest.",
    ),
    "internal_error": StreamRefusal(500, 4500, True, "Something failed on our side. Connect again."),
}
NOT_UTF8, TOO_BIG, RESTARTING, TOO_MANY_INVALID = 1007, 1009, 1012, 4400


class Close(msgspec.Struct, frozen=True):
    can_retry: bool
    reason: str


CLOSES: dict[int, Close] = {
    NOT_UTF8: Close(False, "A text is not valid UTF-8. No error frame precedes it."),
    TOO_BIG: Close(False, "A message is larger than 16 KiB. No error frame precedes it."),
    RESTARTING: Close(
        True, "This server is restarting, or has far more streams than another, as a notice has announced."
    ),
    TOO_MANY_INVALID: Close(False, "The tenth invalid message within 60 seconds."),
} | {
    refusal.close: Close(refusal.can_retry, refusal.message)
    for refusal in REFUSALS.values()
    if refusal.close is not None
}


class ErrorDetails(msgspec.Struct, kw_only=True, omit_defaults=True):
    code: Annotated[Code, Meta(description="Stable, and meant for programs.")]
    message: Annotated[str, Meta(description="Meant for people; it may change.")]
    status: Annotated[int, Meta(description="The HTTP status that REST would send.")]
    field: Annotated[str | UnsetType, Meta(description="The part of the message that is wrong.")] = UNSET
    allowed: Annotated[list[str] | UnsetType, Meta(description="The values that are allowed.")] = UNSET
    max: Annotated[
        int | UnsetType, Meta(description="The largest number, or the longest list, that is allowed.")
    ] = UNSET
    limit: Annotated[int | UnsetType, Meta(description="Streams that your tier allows at once.")] = UNSET
    open: Annotated[int | UnsetType, Meta(description="Streams of your account that are open.")] = UNSET
    retry_after: Annotated[int | UnsetType, Meta(description="Seconds to wait before trying again.")] = UNSET


class StreamRefused(Exception):
    """A message is refused, or with a `close` code the socket ends."""

    def __init__(self, code: Code, message: str = "", **details: Any) -> None:
        refusal = REFUSALS[code]
        self.code, self.close, self.can_retry = code, refusal.close, refusal.can_retry
        self.details = ErrorDetails(
            code=code, message=message or refusal.message, status=refusal.status, **details
        )
        self.id: Id | UnsetType = UNSET
        """Of the message that is refused."""
        super().__init__(self.details.message)

    def frame(self, now_ms: int) -> Error:
        return Error(
            error=self.details,
            fatal=self.close is not None,
            retry=self.can_retry,
            id=self.id,
            time=now_ms,
        )


def invalid(message: str, field: str | UnsetType = UNSET, **details: Any) -> StreamRefused:
    return StreamRefused("invalid_message", message, field=field, **details)


# By then the slots of a process that was killed are free.
RETRY_AFTER_S = 5


FOR_PAGES = "The pages of this site have as many streams open as they may have. Close another tab."


def too_many_streams(limit: int, number: int, *, is_page: bool = False) -> StreamRefused:
    message = FOR_PAGES if is_page else ""
    return StreamRefused(
        "stream_limit_exceeded", message, limit=limit, open=number, retry_after=RETRY_AFTER_S
    )


EchoedId = Annotated[
    Id | UnsetType, Meta(description="The `id` of the message that this answers, if it had one.")
]


class Control(msgspec.Struct, omit_defaults=True):
    pass


class Error(Control, tag="error", kw_only=True):
    """An error. If it is fatal, the socket closes."""

    error: Annotated[ErrorDetails, Meta(description="What is wrong.")]
    fatal: Annotated[bool, Meta(description="Whether the socket closes.")]
    retry: Annotated[bool, Meta(description="Whether reconnecting without a change may succeed.")]
    id: EchoedId = UNSET
    time: Milliseconds
