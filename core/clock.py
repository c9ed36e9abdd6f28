"""The market's time in this process: one clock for the engine, its feeds and the readers of their prices."""

import logging
import time
from functools import partial

from django.conf import settings

from .steady_clock import ClockChange, SteadyClock

logger = logging.getLogger(__name__)

# Preferably the clock that goes on while the machine sleeps, so that waking up is no step.
_PASSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def machine_ms() -> int:
    return time.time_ns() // 1_000_000


def passed_ms() -> int:
    """Counts the time that has passed, however the machine's clock is set."""
    return time.clock_gettime_ns(_PASSED) // 1_000_000


def _log_change(change: ClockChange, step_ms: int) -> None:
    if change is ClockChange.MET:
        logger.info("The machine's clock and the market's time agree again")
        return
    where = "ahead" if step_ms > 0 else "back"
    until = f", in {-step_ms / 500:.0f} s" if change is ClockChange.SLOWED else ""
    logger.warning(
        "The machine's clock was set %s by %.1f s: %s%s. Look at the machine's time service.",
        where,
        abs(step_ms) / 1000,
        change.value,
        until,
    )


def go_on_from(known_ms: int) -> None:
    if settings.STEADY_CLOCK:
        clock.go_on_from(known_ms)


clock = SteadyClock(time.time_ns, partial(time.clock_gettime_ns, _PASSED), _log_change)
now_ms = clock.now_ms if settings.STEADY_CLOCK else machine_ms
