"""The newsroom: drafts first, published or rejected in bulk, scored by hand where the model is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.back_office.pages import StaffAdmin, actor, label

from .models import NewsItem
from .services import Unscored, override_score, publish

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[NewsItem]
else:
    ModelForm = forms.ModelForm


class HttpsURLField(forms.URLField):
    def __init__(self, **options: Any) -> None:
        super().__init__(assume_scheme="https", **options)


class NewsItemForm(ModelForm):
    sentiment_score = forms.FloatField(
        min_value=-1,
        max_value=1,
        required=False,
        label="Sentiment score",
        help_text="−1 (bearish) to 1 (bullish). A score of yours replaces the model's.",
        widget=UnfoldAdminTextInputWidget(attrs={"inputmode": "decimal"}),
    )

    class Meta:
        model = NewsItem
        field_classes = {"url": HttpsURLField}
        fields = (
            "title",
            "summary",
            "url",
            "source",
            "category",
            "symbols",
            "published_at",
            "sentiment_score",
        )

    def clean_sentiment_score(self) -> float | None:
        score: float | None = self.cleaned_data["sentiment_score"]
        if score is None and self.instance.status == NewsItem.Status.PUBLISHED:
            raise forms.ValidationError("A published item keeps a score. Reject it first.")
        return score


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
    list_filter = ("status", "category")
    # The names of the states happen to sort as the work does: draft, published, rejected.
    ordering = ("status", "-published_at", "-pk")
    sortable_by = ()
    search_fields = ("title",)
    autocomplete_fields = ("symbols",)
    readonly_fields = ("status", "model", "sentiment_label")
    actions = ("publish_chosen", "reject_chosen")
    fieldsets = (
        (None, {"fields": ("title", "summary", ("category", "source"), "url", "published_at", "symbols")}),
        ("Sentiment", {"fields": ("sentiment_score", ("sentiment_label", "model"))}),
        ("In the feed", {"fields": ("status",)}),
    )

    @label("Status", draft="warning", published="success", rejected="danger")
    def state(self, item: NewsItem) -> str:
        return item.status

    @label("Sentiment", bullish="success", bearish="danger")
    def sentiment_label(self, item: NewsItem) -> str:
        return item.sentiment

    @admin.display(description="Score")
    def score(self, item: NewsItem) -> str:
        return "" if item.sentiment_score is None else f"{item.sentiment_score:+.2f}"

    def save_model(self, request: HttpRequest, obj: NewsItem, form: Any, change: bool) -> None:
        if not change:
            obj.save()
        if "sentiment_score" in form.changed_data:
            override_score(obj, obj.sentiment_score, by=actor(request))
        # Only what was edited: a colleague may have published or rejected the item meanwhile.
        obj.save(update_fields=set(form.changed_data) - {"symbols"})

    @admin.action(description="Publish", permissions=("change",))
    def publish_chosen(self, request: HttpRequest, queryset: QuerySet[NewsItem]) -> None:
        published = 0
        for item in self.few_enough(request, queryset) or ():
            try:
                with transaction.atomic():
                    publish(item)
                    self.log_change(request, item, "Published.")
                published += 1
            except Unscored as error:
                self.message_user(request, str(error), messages.ERROR)
        if published:
            self.message_user(request, f"Published: {published}.", messages.SUCCESS)

    @admin.action(description="Reject", permissions=("change",))
    def reject_chosen(self, request: HttpRequest, queryset: QuerySet[NewsItem]) -> None:
        chosen = self.few_enough(request, queryset) or []
        with transaction.atomic():
            NewsItem.objects.filter(pk__in=[item.pk for item in chosen]).update(
                status=NewsItem.Status.REJECTED
            )
            for item in chosen:
                self.log_change(request, item, "Rejected.")
        self.message_user(request, f"Rejected: {len(chosen)}.", messages.SUCCESS)
