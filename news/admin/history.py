"""Every score that an item was given, below the item: to read, never to change."""

from __future__ import annotations

from django.template.loader import render_to_string

from news.models import ItemScore, NewsItem

SHOWN = 20


def score_history(item: NewsItem) -> str:
    """The newest first. No formset: nothing here is sent back."""
    scores = list(ItemScore.objects.filter(item=item)[:SHOWN]) if item.pk else []
    return render_to_string("admin/_news_scores.html", {"scores": scores, "title": item.title})
