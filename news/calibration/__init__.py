"""Whether the scores mean anything: what an item said when it entered the feed, and how prices moved then."""

from .outcomes import category_of, open_outcomes, side_of

__all__ = ["category_of", "open_outcomes", "side_of"]
