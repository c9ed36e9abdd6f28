"""What happened and who did it: nothing here can be changed."""

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from unfold.paginator import InfinitePaginator

from accounts.models import AiUsage
from core.events.outbox import ControlEvent

from .staff_pages import ReadOnlyAdmin


@admin.register(ControlEvent)
class ControlEventAdmin(ReadOnlyAdmin[ControlEvent]):
    list_display = ("position", "kind", "by", "facts", "created_at")
    ordering = ("-position",)
    paginator = InfinitePaginator


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin[LogEntry]):
    """The staff's own trail, of everything done on these pages."""

    owner = "user"
    list_display = ("action_time", "user", "content_type", "object_repr", "action_flag", "message")
    list_select_related = ("user", "content_type")
    fields = ("action_time", "user", "content_type", "object_id", "object_repr", "action_flag", "message")
    # By key, which is the order of writing: the time has no index.
    ordering = ("-pk",)
    search_fields = ("user__username__startswith",)
    search_help_text = "Username starts with…"
    paginator = InfinitePaginator

    @admin.display(description="What")
    def message(self, entry: LogEntry) -> str:
        return entry.get_change_message()


@admin.register(AiUsage)
class AiUsageAdmin(ReadOnlyAdmin[AiUsage]):
    owner = "account__user"
    list_display = ("account", "day", "used")
    list_select_related = ("account__user",)
    ordering = ("-pk",)
    search_fields = ("account__user__username__startswith",)
    search_help_text = "Username starts with…"
