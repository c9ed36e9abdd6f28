"""Incidents in the back office."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.admin import TabularInline

from accounts.back_office import TIMES, StaffAdmin, VisibleText, label

from .models import Incident, Note


class NoteInline(VisibleText, TabularInline):  # type: ignore[misc]
    model = Note
    formfield_overrides = TIMES
    extra = 1
    fields = ("at", "text")


@admin.register(Incident)
class IncidentAdmin(StaffAdmin[Incident]):
    list_display = ("title", "state", "impact", "started_at", "ended_at")
    list_filter = ("impact",)
    sortable_by = None
    inlines = (NoteInline,)
    actions = ("end_chosen",)

    @label("State", open="danger", over="success", planned="info")
    def state(self, incident: Incident) -> str:
        if incident.ended_at:
            return "over"
        return "planned" if incident.started_at > timezone.now() else "open"

    @admin.action(description="End now", permissions=("change",))
    def end_chosen(self, request: HttpRequest, queryset: QuerySet[Incident]) -> None:
        ended = 0
        for incident in queryset.filter(ended_at=None, started_at__lte=timezone.now()):
            incident.ended_at = timezone.now()
            incident.save(update_fields=("ended_at",))
            self.log_change(request, incident, "Ended.")
            ended += 1
        self.message_user(request, f"Ended: {ended}.", messages.SUCCESS)
