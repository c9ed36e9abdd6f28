"""The newsroom in the back office."""

from .newsroom.item_admin import NewsItemAdmin as NewsItemAdmin
from .newsroom.source_admin import SourceAdmin as SourceAdmin
