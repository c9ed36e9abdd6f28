"""Publishing signals, closing them by hand and cancelling them."""

from .actions import current_quote, end_signals, enter_feed, is_free_for_demo, publish, remove_demo

__all__ = ["current_quote", "end_signals", "enter_feed", "is_free_for_demo", "publish", "remove_demo"]
