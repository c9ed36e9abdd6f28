"""What is measured, and what must come of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

OURS = "Tickwire"
OURS_REDIS = "Tickwire, engine apart over Redis"
TOGETHER = "Tickwire, `/ws`"
LIMIT, LIMIT_JOINED = "C, one send each", "C, joined"
UWEBSOCKETS = "uWebSockets (socketify)"
NODE, NODE_JOINED = "Node `ws`", "Node, joined by hand"
NATS, NCHAN = "NATS", "nchan"
CHANNELS = "Channels' tutorial, Redis pub/sub"
Figure = Literal["messages_per_s", "p99_ms", "connection_kb"]


class Case(NamedTuple):
    name: str
    options: Mapping[str, float]
    servers: tuple[str, ...]
    """The product first: the others take turns with it."""
    rounds: int = 3


class Goal(NamedTuple):
    case: str
    figure: Figure
    bound: float
    against: str = ""
    """Empty: the bound is of the figure itself."""
    of: str = OURS
    is_floor: bool = True


ALL = (OURS, LIMIT, LIMIT_JOINED, UWEBSOCKETS, NATS, NCHAN, NODE, CHANNELS)
OWN = (OURS, LIMIT_JOINED, UWEBSOCKETS, NODE_JOINED, NATS)
CLOSED = {"warm": 0.5, "seconds": 2}
TIMED = {"warm": 1, "seconds": 5}
ONE, EIGHT = "w=1", "w=8"
STEADY, MANY = "20 ticks/s", "2,000 clients, 5 ticks/s"
OWN_ONE, OWN_EIGHT, OWN_THIRTY_TWO = "own sets, w=1", "own sets, w=8", "own sets, w=32"
OWN_MANY, IDLE = "own sets, 2,000 clients, 20,000 messages/s", "2,000 idle connections"

CASES = (
    Case(ONE, {"window": 1, **CLOSED}, ALL),
    Case(EIGHT, {"window": 8, **CLOSED}, (*ALL, NODE_JOINED, OURS_REDIS, TOGETHER)),
    Case(OWN_ONE, {"window": 1, "own": 10, **CLOSED}, OWN),
    Case(OWN_EIGHT, {"window": 8, "own": 10, **CLOSED}, (*OWN, TOGETHER)),
    Case(OWN_THIRTY_TWO, {"window": 32, "own": 10, **CLOSED}, OWN),
    Case(STEADY, {"rate": 20, **TIMED}, (OURS, LIMIT, UWEBSOCKETS, NATS, NCHAN, NODE)),
    # One slow tick of 25 is the p99 of a round: so it takes more of them.
    Case(MANY, {"rate": 5, "clients": 2000, **TIMED}, (OURS, LIMIT, UWEBSOCKETS, NODE), rounds=5),
    Case(
        OWN_MANY, {"rate": 50, "clients": 2000, "own": 10, **TIMED}, (OURS, LIMIT, UWEBSOCKETS, NODE_JOINED)
    ),
    Case(IDLE, {"clients": 2000}, (OURS, UWEBSOCKETS, NODE)),
)

GOALS = (
    Goal(EIGHT, "messages_per_s", 0.9, UWEBSOCKETS),
    Goal(EIGHT, "messages_per_s", 1.6, NATS),
    Goal(EIGHT, "messages_per_s", 2, NCHAN),
    Goal(EIGHT, "messages_per_s", 6, NODE),
    Goal(ONE, "messages_per_s", 0.65, LIMIT),
    Goal(ONE, "messages_per_s", 0.8, UWEBSOCKETS),
    Goal(ONE, "messages_per_s", 1.25, NODE),
    Goal(ONE, "messages_per_s", 35, CHANNELS),
    Goal(EIGHT, "messages_per_s", 200, CHANNELS),
    Goal(STEADY, "p99_ms", 0.8, NODE, is_floor=False),
    Goal(MANY, "p99_ms", 30, is_floor=False),
    Goal(MANY, "p99_ms", 1.1, LIMIT, is_floor=False),
    Goal(EIGHT, "messages_per_s", 0.5, OURS, of=OURS_REDIS),
    # A frame costs at most a tenth more than on the path of its stream.
    *(Goal(case, "messages_per_s", 0.91, OURS, of=TOGETHER) for case in (EIGHT, OWN_EIGHT)),
    *(Goal(case, "messages_per_s", 0.95, UWEBSOCKETS) for case in (OWN_ONE, OWN_EIGHT, OWN_THIRTY_TWO)),
    *(Goal(case, "messages_per_s", 1.0, NODE_JOINED) for case in (OWN_ONE, OWN_EIGHT, OWN_THIRTY_TWO)),
    *(Goal(case, "messages_per_s", 0.8, LIMIT_JOINED) for case in (OWN_ONE, OWN_EIGHT, OWN_THIRTY_TWO)),
    Goal(OWN_MANY, "p99_ms", 6, is_floor=False),
    Goal(IDLE, "connection_kb", 16, is_floor=False),
)
