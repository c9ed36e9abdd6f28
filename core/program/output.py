"""Standard output whose reader may go, as with `| head`."""

import os
import select
import sys
from typing import Any, TextIO


def is_unread() -> bool:
    """Otherwise it is another pipe that broke."""
    look = select.poll()
    look.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in look.poll(0))


def give_up() -> None:
    """What is still to be written goes nowhere: Python flushes at its end, and would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class EvenUnread:
    """For a process that goes on without a reader."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        try:
            return self._out.write(text)
        except BrokenPipeError:
            give_up()
            return len(text)

    def flush(self) -> None:
        try:
            self._out.flush()
        except BrokenPipeError:
            give_up()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)
