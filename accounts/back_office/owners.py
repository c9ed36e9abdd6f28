"""Pages of what opens an account: its owner hears by mail what staff did there."""

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

from django.contrib.admin.models import LogEntry
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest
from django.utils.text import capfirst

from accounts.login.answers import tell_of_staff

from .staff_pages import NO_OWNER, owner_of


class OwnerTold:
    """Stands before the kind of page. What is logged is what is told."""

    owner: ClassVar[str | None]

    def log_addition(self, request: HttpRequest, row: Model, message: Any) -> LogEntry:
        return self._told(request, row, super().log_addition(request, row, message))  # type: ignore[misc]

    def log_change(self, request: HttpRequest, row: Model, message: Any) -> LogEntry:
        return self._told(request, row, super().log_change(request, row, message))  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, rows: Iterable[Model]) -> Any:
        for row in rows:
            self.tell(request, row, "Deleted.")
        return super().log_deletions(request, rows)  # type: ignore[misc]

    def _told(self, request: HttpRequest, row: Model, entry: LogEntry) -> LogEntry:
        self.tell(request, row, entry.get_change_message())
        return entry

    def tell(self, request: HttpRequest, row: Model, done: str) -> None:
        person = owner_of(row, self.owner or NO_OWNER)
        if person is None or person == request.user:
            return
        what = f"{capfirst(row._meta.verbose_name)} {row}: {done}"
        transaction.on_commit(partial(tell_of_staff, request, person, what))
