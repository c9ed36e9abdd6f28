"""The version of this program, and the rules of signals that processes of several versions know."""

from collections.abc import Callable

# The only place that has it; the wheel takes it from here.
VERSION = "0.2.0.dev0"


class KnownRules:
    """While an installation is upgraded, several versions run side by side: new rules begin once all know
    them."""

    def __init__(self) -> None:
        self.newest = 1
        """The rules that this process knows."""
        self.asked: list[Callable[[], int | None]] = []
        """Each says the oldest that some processes know; None if none of them runs."""

    def oldest(self) -> int | None:
        known = [rules for ask in self.asked if (rules := ask()) is not None]
        return min(known, default=None)


known_rules = KnownRules()
