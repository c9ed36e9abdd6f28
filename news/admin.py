"""The newsroom in the back office."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.back_office import StaffAdmin, label
from news.models import ItemScore, NewsItem, Source
from news.scoring import score_title

from .newsroom import (
    NewsItemForm,
    Reworded,
    Unscored,
    ask_again,
    locked,
    marks_of,
    override_score,
    publish,
    reject,
    replace_model_score,
    take_answer,
    take_back,
)

# News items: drafts first, published or rejected in bulk, scored by hand where the model is wrong.
SHOWN = 20
FROM_QUEUE = "queue"


@admin.register(NewsItem)
class NewsItemAdmin(StaffAdmin[NewsItem]):
    form = NewsItemForm
    list_display = (
        "title",
        "state",
        "category",
        "sentiment_label",
        "score",
        "model",
        "source",
        "published_at",
    )
    list_filter = ("status", "category", "origin")
    # The states happen to sort alphabetically as the work does: draft, published, rejected.
    ordering = ("status", "-published_at", "-pk")
    search_fields = ("title",)
    autocomplete_fields = ("symbols",)
    readonly_fields = ("status", "model", "sentiment_label", "arrived_at", "scores")
    actions = (
        *("publish_chosen", "reject_chosen", "take_back_chosen", "score_again_chosen"),
        "replace_score_of_chosen",
    )
    fieldsets = (
        (None, {"fields": ("title", "summary", ("category", "source"), "url", "published_at", "symbols")}),
        ("Sentiment", {"fields": ("sentiment_score", ("sentiment_label", "model"), "scores")}),
        ("In the feed", {"fields": ("status", "arrived_at")}),
    )

    @label("Status", draft="warning", published="success", rejected="danger")
    def state(self, item: NewsItem) -> str:
        return item.status

    @label("Sentiment", bullish="success", bearish="danger")
    def sentiment_label(self, item: NewsItem) -> str:
        return item.sentiment

    @admin.display(description=ModelAdmin.action_checkbox.short_description)
    def action_checkbox(self, item: NewsItem) -> SafeString:
        """Carries the mark of the row as it is shown, so that nothing else is published."""
        box = super().action_checkbox(item)
        return format_html('{}<input type="hidden" name="seen" value="{}:{}">', box, item.pk, item.mark)

    @admin.display(description="Score")
    def score(self, item: NewsItem) -> str:
        return "" if item.sentiment_score is None else f"{item.sentiment_score:+.2f}"

    @admin.display(description="Scores, the newest first")
    def scores(self, item: NewsItem) -> str:
        """No formset, because nothing is sent back."""
        scores = list(ItemScore.objects.filter(item=item)[:SHOWN]) if item.pk else []
        return render_to_string("admin/news/_scores.html", {"scores": scores, "title": item.title})

    def save_model(self, request: HttpRequest, obj: NewsItem, form: Any, change: bool) -> None:
        score = obj.sentiment_score
        if not change:
            obj.sentiment_score = None
            obj.save()
        if "sentiment_score" in form.changed_data:
            override_score(obj, score, by=request.user.get_username())
        elif change and "category" in form.changed_data:
            # After the transaction of the page, because a model may be slow.
            transaction.on_commit(
                partial(score_for_category, obj.pk, obj.category, by=request.user.get_username())
            )
        # Only the edited fields: a colleague may have published or rejected the item in the meantime.
        obj.save(update_fields=set(form.changed_data) - {"symbols", "sentiment_score"})

    def response_post_save_change(self, request: HttpRequest, obj: NewsItem) -> HttpResponseRedirect:
        if FROM_QUEUE in request.GET:
            return redirect("news_queue")
        return super().response_post_save_change(request, obj)

    @admin.action(description="Publish", permissions=("change",))
    def publish_chosen(self, request: HttpRequest, queryset: QuerySet[NewsItem]) -> None:
        self.act(request, queryset, partial(publish, by=request.user.get_username()), "Published")

    @admin.action(description="Reject", permissions=("change",))
    def reject_chosen(self, request: HttpRequest, queryset: QuerySet[NewsItem]) -> None:
        self.act(request, queryset, reject, "Rejected")

    @admin.action(description="Back to the drafts", permissions=("change",))
    def take_back_chosen(self, request: HttpRequest, queryset: QuerySet[NewsItem]) -> None:
        self.act(request, queryset, take_back, "Back to the drafts")

    @admin.action(description="Score again; published items keep theirs", permissions=("change",))
    def score_again_chosen(self, request: HttpRequest, queryset: QuerySet[NewsItem]) -> None:
        self.score_chosen_anew(request, queryset, "Scored again")

    @admin.action(description="Score again, published items too", permissions=("change",))
    def replace_score_of_chosen(self, request: HttpRequest, queryset: QuerySet[NewsItem]) -> None:
        self.score_chosen_anew(request, queryset, "Scored again, published or not", replace_published=True)

    def score_chosen_anew(
        self,
        request: HttpRequest,
        queryset: QuerySet[NewsItem],
        done: str,
        *,
        replace_published: bool = False,
    ) -> None:
        by = request.user.get_username()

        def ask(item: NewsItem) -> Callable[[], object]:
            answer = ask_again(item, score_title)
            return partial(take_answer, item, answer, by=by, replace_published=replace_published)

        self.act_in_turn(request, queryset, ask, done)

    def act(
        self, request: HttpRequest, queryset: QuerySet[NewsItem], act: Callable[[NewsItem], object], done: str
    ) -> None:
        marks = marks_of(request.POST.getlist("seen"))

        def act_as_read(item: NewsItem) -> None:
            if item.pk in marks:
                locked(item, marks[item.pk], in_any_state=True)
            act(item)

        self.act_in_turn(request, queryset, lambda item: partial(act_as_read, item), done)

    def act_in_turn(
        self,
        request: HttpRequest,
        queryset: QuerySet[NewsItem],
        prepare: Callable[[NewsItem], Callable[[], object]],
        done: str,
    ) -> None:
        """Each item has its own transaction, so that a refusal or a wait concerns no other."""
        count = 0
        for item in self.few_enough(request, queryset) or ():
            try:
                act = prepare(item)
                with transaction.atomic():
                    act()
                    self.log_change(request, item, f"{done}.")
                count += 1
            except (Unscored, Reworded) as error:
                self.message_user(request, str(error), messages.ERROR)
        if count:
            self.message_user(request, f"{done}: {count}.", messages.SUCCESS)


def score_for_category(pk: int, category: str, *, by: str) -> None:
    """Scores a draft again that was moved to another category. A published item keeps its score."""
    item = NewsItem.objects.filter(pk=pk, category=category, status=NewsItem.Status.DRAFT).first()
    if item is not None:
        replace_model_score(item, score_title(item.title, category), by=by)


# The sources of news: their settings, their state, and what is wrong with them.
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
