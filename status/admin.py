"""Incidents in the back office."""

from collections import Counter

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
        now, done = timezone.now(), Counter[str]()
        for incident in queryset:
            state = self.state(incident)
            done[state] += 1
            if state == "open":
                incident.ended_at = now
                incident.save(update_fields=("ended_at",))
                self.log_change(request, incident, "Ended.")
        if done["open"]:
            self.message_user(request, f"Ended: {done['open']}.", messages.SUCCESS)
        if done["planned"]:
            self.message_user(
                request,
                f"Planned, so left alone: {done['planned']}. To call an incident off, delete it.",
                messages.WARNING,
            )
        if done["over"]:
            self.message_user(request, f"Already over: {done['over']}.", messages.INFO)
