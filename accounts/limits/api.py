"""GET /api/limits: what the account has left, free of charge."""

import time
from datetime import UTC, datetime
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta
from rest_framework.decorators import action
from rest_framework.request import Request

from accounts.authentication import FreeOfCharge, caller_of
from accounts.keys.caller import Allowances, Caller
from accounts.open_streams.registry import open_streams
from core.background import SharedLookups
from core.contract.answers import Answer
from core.contract.parameters import describes
from core.plain_json import encode
from core.threads import in_thread_promptly
from core.viewset import ApiViewSet

from .throttling import AiCallStanding, throttle

Count = Annotated[int, Meta(ge=0)]


class RequestWindow(msgspec.Struct):
    component: ClassVar[str] = "Window"

    limit: Annotated[Count, Meta(description="Requests allowed in any 60 seconds.")]
    remaining: Annotated[Count, Meta(description="Requests that you can make now.")]
    reset: Annotated[int, Meta(description="Epoch seconds when the next request becomes available.")]


class AiCalls(msgspec.Struct):
    limit: Annotated[Count, Meta(description="AI calls allowed on a UTC day.")]
    remaining: Annotated[Count, Meta(description="AI calls left today.")]
    reset: Annotated[int, Meta(description="Epoch seconds of the next UTC midnight.")]


class StreamAge(msgspec.Struct):
    component: ClassVar[str] = "OpenStream"

    path: Annotated[str, Meta(description="The path of the stream, such as /ws/market.")]
    age_seconds: Annotated[Count, Meta(description="Seconds since it was opened.")]


class Streams(msgspec.Struct):
    limit: Annotated[Count, Meta(description="Streams that may be open at once.")]
    open: Annotated[list[StreamAge], Meta(description="The streams that are open now.")]


class Limits(msgspec.Struct):
    tier: Annotated[str, Meta(description="The name that staff gave it, such as free, pro or premium.")]
    requests: Annotated[RequestWindow, Meta(description="The request window.")]
    ai_calls: Annotated[AiCalls, Meta(description="The AI calls of the day.")]
    streams: Annotated[Streams, Meta(description="The open streams.")]


PRO = Limits(
    tier="pro",
    requests=RequestWindow(limit=120, remaining=57, reset=1795262412),
    ai_calls=AiCalls(limit=20, remaining=18, reset=1795305600),
    streams=Streams(limit=5, open=[StreamAge(path="/ws/market", age_seconds=3641)]),
)

# No window limits this path, so this must bound the requests of an account.
_looks: SharedLookups[tuple[int, str, Allowances], bytes] = SharedLookups()


class LimitsViewSet(ApiViewSet):
    throttle_classes = (FreeOfCharge,)

    @action(detail=False)  # type: ignore[type-var]
    @describes(
        "getLimits",
        Limits,
        "What is left of your limits",
        tag="Service",
        examples={"A Pro account with one stream": PRO},
        details="The request window, the AI calls of the day and the open streams of your account. It costs "
        "nothing and works even when the window is used up.",
    )
    async def limits(self, request: Request) -> Answer:
        caller = caller_of(request)
        who = caller.account_id, caller.counted_under, caller.allowances
        return Answer(await _looks.ask(who, lambda: look(caller)))


async def look(caller: Caller) -> bytes:
    allowed = caller.allowances
    standing = await throttle.look(caller)
    now = datetime.now(UTC)
    ai = await in_thread_promptly(AiCallStanding.of, caller.ai_calls_of, allowed.ai_calls, now)
    body = Limits(
        tier=allowed.tier,
        requests=RequestWindow(standing.limit, standing.remaining, standing.reset),
        ai_calls=AiCalls(ai.limit, ai.remaining, ai.reset),
        streams=Streams(
            limit=allowed.streams,
            open=[
                StreamAge(stream.path, int(time.time() - stream.opened_at))
                for stream in await open_streams.of(caller.counted_under)
            ],
        ),
    )
    return encode(body)
