"""News: where it comes from, what it is, how it was scored, and what prices did afterwards."""

from .announcements import NewsAnnouncement
from .items import ItemScore, NewsItem
from .language_use import LanguageUse
from .outcomes import Outcome
from .sources import Source

__all__ = ("ItemScore", "LanguageUse", "NewsAnnouncement", "NewsItem", "Outcome", "Source")
