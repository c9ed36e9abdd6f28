"""News items: drafts first, published or rejected in bulk, scored by hand where the model is wrong."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin

from accounts.back_office import StaffAdmin, label
from news.models import ItemScore, NewsItem
from news.scoring import score_title

from .decisions import (
    Reworded,
    Unscored,
    ask_again,
    locked,
    override_score,
    publish,
    reject,
    replace_model_score,
    take_answer,
    take_back,
)
from .item_form import NewsItemForm
from .queue import marks_of

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
