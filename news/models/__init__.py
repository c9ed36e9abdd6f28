"""News: where it comes from, what it is, how it was scored, and what prices did afterwards."""

from .items import ItemScore, NewsItem
from .language_use import LanguageUse
from .outcomes import Outcome
from .sources import Source

__all__ = ("ItemScore", "LanguageUse", "NewsItem", "Outcome", "Source")
