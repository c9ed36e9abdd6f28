"""Changes of tables that a running service does not notice."""

from .concurrent_index import ConcurrentIndex

__all__ = ["ConcurrentIndex"]
