"""Acts on keys and their rows, in a thread of the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accounts.key_text import prefix_of
from accounts.keys.issuing import revoke_key
from accounts.models import ApiKey
from core.threads import in_thread


def row(key: str) -> ApiKey:
    return ApiKey.objects.select_related("account__tier", "account__user").get(prefix=prefix_of(key))


async def act(change: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return await in_thread(lambda: change(*args, **options))


async def revoke(key: str) -> None:
    await in_thread(lambda: revoke_key(row(key), by="test"))
