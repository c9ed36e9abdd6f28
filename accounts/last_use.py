"""When keys were last used: noted in memory, and written for many at once."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError
from django.db.models import Case, Model, Q, Value, When

from .exceptions import Overloaded
from .threads import in_thread

# With the 15 s between two looks, so that a use stands there within a minute.
WRITTEN_EVERY_S = 40.0
# A use that is known so exactly is not written again.
CLOSE = timedelta(seconds=15)
AT_ONCE = 200


class LastUse:
    def __init__(self, model: type[Model]) -> None:
        self._model = model
        self._used: dict[int, datetime] = {}
        self._written_at: dict[int, float] = {}

    def note(self, key_id: int, at: datetime) -> None:
        self._used[key_id] = at

    async def record(self, *, all_of_it: bool = False) -> None:
        """Write those that were not written for a while; the others wait for their turn."""
        now = time.monotonic()
        self._written_at = {key: at for key, at in self._written_at.items() if now - at < WRITTEN_EVERY_S}
        due = {key: at for key, at in self._used.items() if all_of_it or key not in self._written_at}
        if not due:
            return
        self._used = {key: at for key, at in self._used.items() if key not in due}
        try:
            await in_thread(self._write, due)
        except (DatabaseError, Overloaded):
            self._used = due | self._used
            raise
        self._written_at |= dict.fromkeys(due, now)

    def _write(self, due: dict[int, datetime]) -> None:
        """Sorted, so that two processes never wait for each other in a circle."""
        keys = sorted(due)
        for start in range(0, len(keys), AT_ONCE):
            self._write_some({key: due[key] for key in keys[start : start + AT_ONCE]})

    def _write_some(self, due: dict[int, datetime]) -> None:
        # Another process may have written the same key a moment ago: one of them is enough.
        enough = Case(*(When(pk=key, then=Value(at - CLOSE)) for key, at in due.items()))
        is_old = Q(last_used_at=None) | Q(last_used_at__lt=enough)
        manager: Any = self._model._default_manager
        manager.filter(is_old, pk__in=due).update(
            last_used_at=Case(*(When(pk=key, then=Value(at)) for key, at in due.items()))
        )
