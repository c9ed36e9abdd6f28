"""What accounts use, for people to look at."""

from .buffer import usage_buffer

__all__ = ["usage_buffer"]
