"""GET /api/limits: what the account has left, free of charge."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest

from . import ai_allowance
from .api import Answer, ApiViewSet, encode
from .schema import describes
from .serializers import LimitsSerializer
from .shared_looks import SharedLooks
from .streams import open_streams
from .threads import in_thread_promptly
from .throttling import throttle
from .tiers import Allowances, Caller

# Nobody waits for a window here, so nothing else keeps an account from asking on all its connections.
_looks: SharedLooks[tuple[int, Allowances], bytes] = SharedLooks()


class LimitsViewSet(ApiViewSet):
    is_free = True

    @describes(
        "getLimits",
        LimitsSerializer,
        "What is left of your limits",
        tag="Service",
        details="The request window, the AI calls of the day and the open streams of your account. "
        "Free of charge: it answers even when the window is used up.",
    )
    async def retrieve(self, request: HttpRequest) -> Answer:
        caller = self.caller
        return Answer(await _looks.ask((caller.account_id, caller.allowances), lambda: look(caller)))


async def look(caller: Caller) -> bytes:
    allowed = caller.allowances
    standing = await throttle.look(caller)
    now = datetime.now(UTC)
    ai = await in_thread_promptly(ai_allowance.look, caller.account_id, allowed.ai_calls, now)
    body: dict[str, Any] = {
        "tier": allowed.tier,
        "requests": {
            "limit": standing.limit,
            "remaining": standing.remaining,
            "reset": math.ceil(time.time() + standing.frees_in),
        },
        "ai_calls": {"limit": ai.limit, "remaining": ai.remaining, "reset": ai.reset},
        "streams": {
            "limit": allowed.streams,
            "open": [
                {"path": stream.path, "age_seconds": int(time.time() - stream.opened_at)}
                for stream in await open_streams.of(caller.account_id)
            ],
        },
    }
    return encode(body)
