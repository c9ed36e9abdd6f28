"""The form of one item."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from django import forms
from django.utils import timezone
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.number_fields import FloatNumberField
from news.models import NewsItem

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[NewsItem]
else:
    ModelForm = forms.ModelForm


HttpsURLField = partial(forms.URLField, assume_scheme="https")
NO_SCORE = "A score is a number from −1 to 1, such as 0.4."
ScoreField = partial(
    FloatNumberField,
    min_value=-1,
    max_value=1,
    error_messages=dict.fromkeys(("required", "invalid", "min_value", "max_value"), NO_SCORE),
)
# The clock of a curator may be ahead of ours.
MOST_AHEAD = timedelta(minutes=5)


class NewsItemForm(ModelForm):
    sentiment_score = ScoreField(
        required=False,
        label="Sentiment score",
        help_text="−1 (bearish) to 1 (bullish) for the category's asset: in forex the currency named first, "
        "in macro stocks. A score of yours replaces the model's.",
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

    def clean_published_at(self) -> datetime:
        at: datetime = self.cleaned_data["published_at"]
        if at > timezone.now() + MOST_AHEAD:
            raise forms.ValidationError(
                "This is in the future. Enter the time at which the source published it."
            )
        return at

    def clean_sentiment_score(self) -> float | None:
        score: float | None = self.cleaned_data["sentiment_score"]
        if score is None and self.instance.status == NewsItem.Status.PUBLISHED:
            raise forms.ValidationError("A published item keeps a score. Reject it first.")
        return score
