"""Whether scores mean anything: the score of an item when it entered the feed, and how prices moved then."""

from .outcomes import category_of, open_outcomes, side_of

__all__ = ["category_of", "open_outcomes", "side_of"]
