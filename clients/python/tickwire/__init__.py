"""A client of Tickwire: REST, walks over what is stored, streams that resume, and a command line."""

from .asynchronous import AsyncClient
from .errors import (
    ApiError,
    BrokenAnswer,
    DownloadError,
    MissingExtra,
    ServiceUnreachable,
    StateError,
    StreamError,
    TickwireError,
    WalkInterrupted,
)
from .missed import Missed
from .pages import Moment, Page
from .state import State
from .synchronous import Client
from .types import Candle
from .walks import AsyncHistory, AsyncWalk, History, Walk

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncHistory",
    "AsyncWalk",
    "BrokenAnswer",
    "Candle",
    "Client",
    "DownloadError",
    "History",
    "Missed",
    "MissingExtra",
    "Moment",
    "Page",
    "ServiceUnreachable",
    "State",
    "StateError",
    "StreamError",
    "TickwireError",
    "Walk",
    "WalkInterrupted",
]
