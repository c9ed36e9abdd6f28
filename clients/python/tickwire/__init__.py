"""A client of Tickwire: REST, streams that resume by themselves, and a command line."""

from .asynchronous import AsyncClient
from .errors import ApiError, StreamError
from .synchronous import Client

__all__ = ["ApiError", "AsyncClient", "Client", "StreamError"]
