"""The pages on which people look after their own account."""

from .requests import PersonRequest, post_only

__all__ = ["PersonRequest", "post_only"]
