"""The one exception of whatever goes wrong with an endpoint."""

from __future__ import annotations


class LanguageFailed(Exception):
    """No answer; the sentence says why."""

    def __init__(self, why: str, *, wait_s: float = 0.0, is_lasting: bool = False) -> None:
        super().__init__(why)
        self.wait_s = wait_s
        """Seconds after which asking again makes sense; 0 where nobody knows."""
        self.is_lasting = is_lasting
        """Asking again at once would fail again."""
