"""The pages on which people look after their own account."""

from accounts.login.mails import address_for_answers

from .requests import PersonRequest, post_only

__all__ = ["PersonRequest", "address_for_answers", "post_only"]
