"""News: where it comes from, what it is, how it was scored, and what prices did afterwards."""

from news.labels import BEARISH_FROM, BULLISH_FROM, sentiment_label

from .items import ItemScore, NewsItem, NewsQuerySet
from .language_use import LanguageUse
from .outcomes import Outcome
from .sources import Source

__all__ = (
    "BEARISH_FROM",
    "BULLISH_FROM",
    "ItemScore",
    "LanguageUse",
    "NewsItem",
    "NewsQuerySet",
    "Outcome",
    "Source",
    "sentiment_label",
)
