"""Pages of a list of signals, by their numbers."""

from typing import NamedTuple

PER_PAGE = 20


class SignalsPage(NamedTuple):
    number: int
    first: int
    """The signal at its top, counted from the newest, which is 1."""
    last: int
    total: int

    @property
    def newer(self) -> int:
        """The number of the page before it; 0 if there is none."""
        return self.number - 1

    @property
    def older(self) -> int:
        return self.number + 1 if self.last < self.total else 0


def read_page(text: str, total: int) -> SignalsPage:
    """The first page for what is no number, the last one for a number beyond it."""
    asked = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1
    number = min(max(asked, 1), max(1, -(-total // PER_PAGE)))
    return SignalsPage(number, (number - 1) * PER_PAGE + 1, min(number * PER_PAGE, total), total)
