"""What the command that loads the demo prints as it goes."""

from collections.abc import Callable
from typing import Protocol

Progress = Callable[[str], None]


class Writable(Protocol):
    """Standard output, as a command has it."""

    def write(self, text: str, *, ending: str) -> object: ...
    def flush(self) -> None: ...
    def isatty(self) -> bool: ...


def line_on(out: Writable) -> Progress:
    """On a terminal one line that changes, elsewhere a line for each step."""

    def write(text: str) -> None:
        if out.isatty():
            out.write(f"\r\033[K{text}", ending="")
        else:
            out.write(text, ending="\n")
        out.flush()

    return write
