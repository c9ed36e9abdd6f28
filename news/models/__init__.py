"""News: where it comes from, what it is, how it was scored, and what prices did afterwards."""

from news.labels import BEARISH_FROM, BULLISH_FROM, sentiment_label
from news.language.use import LanguageUse

from .items import NewsItem, NewsQuerySet
from .outcomes import Outcome
from .scores import ItemScore
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
