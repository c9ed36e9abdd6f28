"""What a process holds from its start on."""

from __future__ import annotations

import gc


def settle() -> None:
    """It is no garbage: to look through it again and again holds everybody up for a tenth of a second."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
