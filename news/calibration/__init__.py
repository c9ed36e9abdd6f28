"""What scores are worth: the one with which an item entered the feed, and how prices moved afterwards."""

from .outcomes import category_of, open_outcomes, side_of

__all__ = ["category_of", "open_outcomes", "side_of"]
