"""A client of Tickwire: REST, walks over what is stored, streams that resume, and a command line."""

from .asynchronous import AsyncClient
from .errors import (
    ApiError,
    BrokenAnswer,
    DownloadError,
    MissingExtra,
    ServiceUnreachable,
    StreamError,
    TickwireError,
    WalkInterrupted,
)
from .pages import Moment, Page
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
    "MissingExtra",
    "Moment",
    "Page",
    "ServiceUnreachable",
    "StreamError",
    "TickwireError",
    "Walk",
    "WalkInterrupted",
]
