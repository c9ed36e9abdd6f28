"""Whether this machine's clock is kept right, and how far others are from it."""

import ctypes
import os
from collections.abc import Iterator

from market.store import clock_of_writer_s
from signals_feed.decisions import SOON_S

from .diagnosis import Diagnosis, fail, ok, warn

ABOUT = "clock"
NTP = "Run a time service such as chrony or systemd-timesyncd on each machine."
# Beyond the first, times in logs and frames contradict each other; beyond the second, limits and leases err.
MUCH_S, TOO_MUCH_S = 0.5, 5.0

# https://man7.org/linux/man-pages/man2/adjtimex.2.html: what it returns, and the size of its structure.
TIME_ERROR, TIMEX_BYTES = 5, 256


def check_clock() -> Iterator[Diagnosis]:
    yield judge(clock_state())


def clock_state() -> int:
    """What the kernel says of it; -1 where it cannot be asked."""
    try:
        # With zeros it reads and sets nothing, so anybody may call it.
        return int(ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(TIMEX_BYTES)))
    except (AttributeError, OSError):
        return -1


def judge(state: int) -> Diagnosis:
    if state == TIME_ERROR:
        return warn(ABOUT, "According to the kernel, no time service keeps this machine's clock right.", NTP)
    if state < 0:
        return warn(ABOUT, f"{os.uname().sysname} does not say whether the clock is kept right.", NTP)
    return ok(ABOUT, "A time service keeps this machine's clock right.")


def check_engine_clock() -> Iterator[Diagnosis]:
    off_s = clock_of_writer_s()
    if off_s is None:
        return
    says = f"The engine's clock is {abs(off_s):,.1f} s {'ahead of' if off_s > 0 else 'behind'} the database's"
    if abs(off_s) > SOON_S:
        yield fail(ABOUT, f"{says}: signals are not filled, and end as cancelled.", NTP)
    elif abs(off_s) > MUCH_S:
        yield warn(ABOUT, f"{says}.", NTP)
    else:
        yield ok(ABOUT, "The engine's clock agrees with the database's.")


def compare(about: str, who: str, theirs: float, before: float, after: float) -> Diagnosis:
    """`before` and `after` the question, by our clock, all in seconds. Half the way is nobody's fault."""
    way_s = (after - before) / 2
    off_s = theirs - (before + way_s)
    if abs(off_s) - way_s < MUCH_S:
        return ok(about, f"The clock of {who} agrees with ours, to {max(abs(off_s), way_s) * 1000:,.0f} ms.")
    says = f"The clock of {who} is {abs(off_s):,.1f} s {'ahead of' if off_s > 0 else 'behind'} ours."
    return fail(about, says, NTP) if abs(off_s) - way_s >= TOO_MUCH_S else warn(about, says, NTP)
