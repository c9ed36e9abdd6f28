"""The form of one item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from unfold.widgets import UnfoldAdminTextInputWidget

from news.models import NewsItem

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[NewsItem]
else:
    ModelForm = forms.ModelForm


class HttpsURLField(forms.URLField):
    def __init__(self, **options: Any) -> None:
        super().__init__(assume_scheme="https", **options)


class ScoreField(forms.FloatField):
    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=-1, max_value=1, **options)


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

    def clean_sentiment_score(self) -> float | None:
        score: float | None = self.cleaned_data["sentiment_score"]
        if score is None and self.instance.status == NewsItem.Status.PUBLISHED:
            raise forms.ValidationError("A published item keeps a score. Reject it first.")
        return score
