"""Output that somebody may stop reading, as after `| head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def until_nobody_reads() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # Python flushes standard output at its end, and would complain of the closed pipe then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
