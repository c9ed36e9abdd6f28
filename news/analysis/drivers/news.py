"""What was published of late: first of the instrument itself, then of its category. Pure."""

from __future__ import annotations

from news.analysis.answer import Finding, NewsEvidence, WeighedItem
from news.analysis.facts import Facts, NewsFact
from news.analysis.moments import iso_ms
from news.labels import sentiment_label

HOUR_MS = 3_600_000
LOOKED_BACK_MS = 72 * HOUR_MS
HALVES_AFTER_MS = 12 * HOUR_MS
OF_CATEGORY = 0.5
# Half a fresh item of doubt: what is old or alone moves the score less.
DOUBT = 0.5
SHOWN = 8


def weigh(facts: Facts) -> Finding:
    weighed = [
        (weight_of(item, facts), item)
        for item in facts.news
        if facts.at_ms - item.published_ms <= LOOKED_BACK_MS
    ]
    if not weighed:
        return Finding("No news of the last three days concerns it.")
    total = DOUBT + sum(weight for weight, _ in weighed)
    score = sum(weight * item.side * item.score for weight, item in weighed) / total
    weighed.sort(key=lambda each: (-each[0], -each[1].published_ms, -each[1].id))
    shown = [shown_item(item, weight / total) for weight, item in weighed[:SHOWN]]
    return Finding(describe(len(weighed), score, shown[0]), score, NewsEvidence(len(weighed), shown))


def weight_of(item: NewsFact, facts: Facts) -> float:
    relevance = 1.0 if item.names_symbol else OF_CATEGORY
    return relevance * float(0.5 ** ((facts.at_ms - item.published_ms) / HALVES_AFTER_MS))


def shown_item(item: NewsFact, share: float) -> WeighedItem:
    return WeighedItem(
        item.id,
        item.title,
        sentiment_label(item.score),
        item.score,
        iso_ms(item.published_ms),
        "symbol" if item.names_symbol else "category",
        1 if item.side > 0 else -1,
        round(share, 4),
    )


def describe(number: int, score: float, first: WeighedItem) -> str:
    counted = "1 item" if number == 1 else f"{number} items"
    return f"The news of three days is {sentiment_label(score)} ({counted}), foremost “{first.title}”."
