"""The pages on which people look after their own account."""

from .keys import refuse_unprintable
from .requests import PersonRequest, post_only

__all__ = ["PersonRequest", "post_only", "refuse_unprintable"]
