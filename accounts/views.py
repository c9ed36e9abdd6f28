"""GET /api/limits: what the account has left, free of charge."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpRequest

from .api import Answer, ApiViewSet, encode
from .models import AiUsage
from .schema import describes
from .serializers import LimitsSerializer
from .streams import open_streams
from .threads import in_thread
from .throttling import throttle


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
        caller, allowed = self.caller, self.caller.allowances
        standing = await throttle.look(caller)
        now = datetime.now(UTC)
        used = await in_thread(AiUsage.used_on, caller.account_id, now.date())
        body: dict[str, Any] = {
            "tier": allowed.tier,
            "requests": {
                "limit": standing.limit,
                "remaining": standing.remaining,
                "reset": math.ceil(time.time() + standing.frees_in),
            },
            "ai_calls": {
                "limit": allowed.ai_calls,
                "remaining": max(0, allowed.ai_calls - used),
                "reset": int(
                    datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC).timestamp()
                ),
            },
            "streams": {
                "limit": allowed.streams,
                "open": [
                    {"path": stream.path, "age_seconds": int(time.time() - stream.opened_at)}
                    for stream in await open_streams.of(caller.account_id)
                ],
            },
        }
        return Answer(encode(body))
