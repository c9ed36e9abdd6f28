"""What a process holds from its start on, and how often it looks for garbage among what came later."""

from __future__ import annotations

import gc

# Only the last is not the default, but ten times as much: with 2,000 sockets open, a look at all of them
# holds everybody up for 0.15 s. Ended sockets do not need it: tests/contract/streams/test_nothing_left.py.
THRESHOLDS = (700, 10, 100)


def settle() -> None:
    """It is no garbage: to look through it again and again holds everybody up for a tenth of a second."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
