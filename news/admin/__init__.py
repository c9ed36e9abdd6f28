"""The newsroom in the back office."""

from .items import NewsItemAdmin as NewsItemAdmin
from .sources import SourceAdmin as SourceAdmin
