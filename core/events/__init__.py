"""Control events: facts that every process hears of, in commit order, soon after they are committed."""

from .event_feed import AWAY, EVENT_METRICS, EventFeed, feed
from .handlers import Handler
from .kinds import EventKind
from .outbox import ControlEvent

__all__ = ["AWAY", "EVENT_METRICS", "ControlEvent", "EventFeed", "EventKind", "Handler", "feed"]
