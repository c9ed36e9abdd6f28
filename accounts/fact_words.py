"""The words of pages for the codes that events are stored with."""

from collections.abc import Mapping

from accounts.login.factors import FACTOR_NAMES

FACT_WORDS: dict[str, Mapping[str, str]] = {"factor": FACTOR_NAMES}
"""By the name of the fact. A room above adds how a signal ends."""


def word_for(name: str, value: str) -> str:
    return value.title() if name == "tier" else FACT_WORDS.get(name, {}).get(value, value)
