"""What happened and who did it: nothing here can be changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.contrib.admin.utils import display_for_value
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.text import capfirst
from unfold.paginator import InfinitePaginator

from accounts.fact_words import fact_words
from accounts.models import Account, AiUsage
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

from .staff_pages import ReadOnlyAdmin

# Without a name they are acts of the service; of the others it is not known who did them.
OF_THE_SERVICE = frozenset(
    (
        *(EventKind.SIGNAL_CLOSED, EventKind.CANDLES_IMPORTED, EventKind.INSTRUMENTS_CHANGED),
        *(EventKind.NEWS_PUBLISHED, EventKind.DATABASE_RESTORED, EventKind.SIGNALS_REMOVED),
    )
)


# Names that nobody can take: under one of them the service cancels the signals of a series that ends.
SERVICE_NAMES = frozenset(("market", "system", "tickwire"))


def in_words(facts: dict[str, Any], account: str) -> str:
    """account ada, opened at 27 Nov 2026, 12:00:37 UTC, path /ws/market"""
    shown = facts | ({"account": account} if account and "account" in facts else {})
    # By their names, because databases keep them in orders of their own.
    named = sorted((name.replace("_", " "), fact_text(name, value)) for name, value in shown.items())
    return ", ".join(f"{name} {text}" for name, text in named)


def fact_text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_at") and isinstance(value, int | float):
        return f"{datetime.fromtimestamp(value, UTC):%-d %b %Y, %H:%M:%S} UTC"
    return "none" if value in (None, "") else fact_words.word_for(name, str(value))


@admin.register(ControlEvent)
class ControlEventAdmin(ReadOnlyAdmin[ControlEvent]):
    list_display = fields = ("position", "kind", "actor", "what", "at")
    ordering = ("-position",)
    paginator = InfinitePaginator

    def get_queryset(self, request: HttpRequest) -> QuerySet[ControlEvent]:
        account = Account.objects.filter(pk=OuterRef("account_id")).values("user__username")[:1]
        return super().get_queryset(request).annotate(account_name=Subquery(account))

    @admin.display(description="By")
    def actor(self, event: ControlEvent) -> str:
        if event.by in SERVICE_NAMES:
            return "the service"
        return event.by or ("the service" if event.kind in OF_THE_SERVICE else "not recorded")

    @admin.display(description="Facts")
    def what(self, event: Any) -> str:
        return in_words(event.facts, event.account_name or "") or "-"

    @admin.display(description="Time")
    def at(self, event: ControlEvent) -> str:
        return display_for_value(event.created_at, "-")


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin[LogEntry]):
    """The staff's own trail, of everything done on these pages."""

    owner = "user"
    called = ("staff action", "staff actions")
    list_display = fields = ("at", "actor", "kind", "name", "message")
    list_select_related = ("user", "content_type")
    # By key, which is the order of writing: the time has no index.
    ordering = ("-pk",)
    search_fields = ("user__username__startswith",)
    search_help_text = "Username starts with…"
    paginator = InfinitePaginator

    @admin.display(description="Time")
    def at(self, entry: LogEntry) -> str:
        return display_for_value(entry.action_time, "-")

    @admin.display(description="By")
    def actor(self, entry: LogEntry) -> str:
        return entry.user.get_username()

    @admin.display(description="Kind")
    def kind(self, entry: LogEntry) -> str:
        return capfirst(entry.content_type.name) if entry.content_type else "-"

    @admin.display(description="Object")
    def name(self, entry: LogEntry) -> str:
        return entry.object_repr

    @admin.display(description="What")
    def message(self, entry: LogEntry) -> str:
        bare = {ADDITION: "Added.", DELETION: "Deleted."}.get(entry.action_flag, "-")
        return entry.get_change_message() or bare


@admin.register(AiUsage)
class AiUsageAdmin(ReadOnlyAdmin[AiUsage]):
    owner = "account__user"
    list_display = ("account", "day", "used")
    list_select_related = ("account__user",)
    ordering = ("-pk",)
    search_fields = ("account__user__username__startswith",)
    search_help_text = "Username starts with…"
