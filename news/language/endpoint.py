"""The endpoint of a language model with its limits, and the exception for whatever goes wrong there."""

from typing import Literal

import msgspec

LONGEST_IDENTIFIER = 60


class Endpoint(msgspec.Struct, frozen=True):
    protocol: Literal["openai", "anthropic"]
    base_url: str
    model: str
    key: str = ""
    timeout_s: float = 20.0
    daily_budget: int = 500

    @property
    def identifier(self) -> str:
        """As configured; shown on the items that the model scored and in `ai_models_available`."""
        return self.model[:LONGEST_IDENTIFIER]

    def fault(self) -> str:
        """What is wrong with the settings, in one sentence, or an empty text."""
        if not self.base_url.startswith(("https://", "http://")):
            return f"{self._name('BASE_URL')} should start with https:// or http://."
        if not (self.key.isascii() and self.key.isprintable() and " " not in self.key):
            return f"{self._name('API_KEY')} has a character that cannot be part of it."
        if self.protocol == "anthropic" and not self.key:
            return "ANTHROPIC_MODEL is set, so ANTHROPIC_API_KEY is needed too."
        return ""

    def _name(self, end: str) -> str:
        return f"{self.protocol.upper()}_{end}"


class LanguageFailed(Exception):
    """There is no answer; the message says why."""

    def __init__(self, why: str, *, wait_s: float = 0.0, is_lasting: bool = False) -> None:
        super().__init__(why)
        self.wait_s = wait_s
        """Seconds after which it makes sense to ask again; 0 if unknown."""
        self.is_lasting = is_lasting
        """Whether asking again at once would fail again."""
