from types import MethodType

from config.wiring import HANDLERS
from core.events.event_feed import EventFeed


def follow(events: EventFeed, *followers: object) -> None:
    """Each hears of `events` what the service's own object of its class hears of the service's."""
    for kind, handlers in HANDLERS.items():
        for method in (each for each in handlers if isinstance(each, MethodType)):
            for follower in followers:
                if isinstance(follower, type(method.__self__)):
                    events.on(kind, getattr(follower, method.__name__))
