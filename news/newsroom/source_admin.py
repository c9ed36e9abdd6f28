"""The sources of news: their settings, their state, and what is wrong with them."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.back_office import StaffAdmin, label
from news.models import Source

# A single failure happens; this many in a row mean that the source is broken.
BROKEN_FROM = 3
STATE_FIELDS = ("state", ("polled_at", "next_poll"), ("failures", "last_error"), "outcome", "validators")


@admin.register(Source)
class SourceAdmin(StaffAdmin[Source]):
    called = ("news source", "news sources")
    list_display = ("name", "state", "trust", "category", "every", "polled_at", "next_poll", "what_came")
    list_filter = ("is_active", "trust", "category")
    # Sources that need attention come first.
    ordering = ("-failures", "name")
    search_fields = ("name", "address")
    actions = ("poll_chosen", "pause_chosen", "resume_chosen")
    readonly_fields = ("state", "polled_at", "next_poll", "failures", "last_error", "outcome", "validators")
    fieldsets = (
        (None, {"fields": ("name", "address", ("category", "language"))}),
        ("Polling", {"fields": (("is_active", "trust"), "interval_s")}),
        ("How it is going", {"fields": STATE_FIELDS}),
    )

    def formfield_for_dbfield(self, db_field: Any, request: Any, **options: Any) -> Any:
        if db_field.name == "address":
            options["widget"] = UnfoldAdminTextInputWidget(attrs={"type": "url"})
        return super().formfield_for_dbfield(db_field, request, **options)

    @label("State", fine="success", failing="warning", broken="danger", new="info")
    def state(self, source: Source) -> str:
        if not source.is_active:
            return "paused"
        if source.failures:
            return "broken" if source.failures >= BROKEN_FROM else "failing"
        return "fine" if source.polled_at else "new"

    @admin.display(description="Every")
    def every(self, source: Source) -> str:
        minutes, seconds = divmod(source.interval_s, 60)
        return f"{source.interval_s} s" if seconds else f"{minutes} min"

    @admin.display(description="Next poll")
    def next_poll(self, source: Source) -> str:
        if not source.is_active:
            return "when it is active again"
        if source.next_poll_at <= timezone.now():
            return "now"
        return date_format(source.next_poll_at, "DATETIME_FORMAT")

    @admin.display(description="Last outcome")
    def what_came(self, source: Source) -> str:
        if source.failures:
            times = "once" if source.failures == 1 else f"{source.failures} times in a row"
            return f"{source.last_error}, {times}"
        return source.outcome

    @admin.display(description="Last seen version")
    def validators(self, source: Source) -> str:
        return (
            " · ".join(filter(None, (source.modified, source.etag)))
            or "none yet: the next poll takes everything"
        )

    def save_model(self, request: HttpRequest, obj: Source, form: Any, change: bool) -> None:
        if not change:
            obj.save()
            return
        edited = set(form.changed_data)
        if "address" in edited:
            # The validators and faults of the old address mean nothing for the new one.
            obj.etag = obj.modified = obj.last_error = ""
            obj.failures = 0
            edited |= {"etag", "modified", "last_error", "failures"}
        if edited & {"address", "is_active", "interval_s"}:
            obj.next_poll_at = timezone.now()
            edited.add("next_poll_at")
        # Only these fields: polling may write the others at any moment.
        obj.save(update_fields=edited)

    @admin.action(description="Poll now", permissions=("change",))
    def poll_chosen(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        chosen = self._update(request, queryset, "Asked to poll now.", next_poll_at=timezone.now())
        paused = [source.name for source in chosen if not source.is_active]
        if paused:
            self.message_user(request, f"Paused, so not polled: {', '.join(paused)}.", messages.WARNING)
        if len(chosen) > len(paused):
            self.message_user(request, "They are polled within seconds.", messages.SUCCESS)

    @admin.action(description="Pause", permissions=("change",))
    def pause_chosen(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        chosen = self._update(request, queryset, "Paused.", is_active=False)
        self.message_user(request, f"Paused: {len(chosen)}.", messages.SUCCESS)

    @admin.action(description="Resume", permissions=("change",))
    def resume_chosen(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        now = timezone.now()
        chosen = self._update(request, queryset, "Resumed.", is_active=True, next_poll_at=now)
        self.message_user(request, f"Resumed: {len(chosen)}.", messages.SUCCESS)

    def _update(
        self, request: HttpRequest, queryset: QuerySet[Source], log: str, **changes: Any
    ) -> list[Source]:
        chosen = self.few_enough(request, queryset) or []
        Source.objects.filter(pk__in=[source.pk for source in chosen]).update(**changes)
        for source in chosen:
            self.log_change(request, source, log)
        return chosen
