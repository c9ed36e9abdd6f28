"""Milliseconds since the epoch, aware datetimes and the ISO texts on the wire: each conversion once."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
MINUTE_MS = 60_000


def moment(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms // 1000, UTC).replace(microsecond=time_ms % 1000 * 1000)


def epoch_ms(at: datetime) -> int:
    """The nearest millisecond."""
    return round(at.timestamp() * 1000)


def epoch_ms_before(at: datetime) -> int:
    """The last whole millisecond that is not after it."""
    return (at - EPOCH) // MILLISECOND


def epoch_ms_after(at: datetime) -> int:
    """The first whole millisecond that is not before it."""
    return -((EPOCH - at) // MILLISECOND)


def read_iso(text: str) -> datetime:
    """An ISO date or time; without an offset it is UTC. Or ValueError."""
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def iso_time(at: datetime) -> str:
    """2026-11-21T12:00:00.250Z; a naive one comes from SQLite, which keeps UTC without saying so."""
    utc = at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds") + "Z"


def iso_ms(time_ms: int) -> str:
    """2026-11-21T12:00:00.250Z"""
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


# The opens of candles come again and again, and strftime takes its time.
@lru_cache(maxsize=4096)
def iso_s(time_ms: int) -> str:
    """2026-11-21T12:00:00Z"""
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def iso_date(time_ms: int) -> str:
    """2026-11-21"""
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%d}"


# An age stays in the smaller unit until it is two of the larger one.
AGE_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def age_text(seconds: float) -> str:
    """45 s, 119 s, 2 min, 38 h, 2 d: whole units that have passed."""
    for length, unit in AGE_UNITS:
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(0, seconds) // 1:.0f} s"


def midnight(at: datetime) -> datetime:
    """The beginning of its UTC day."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def hours_and_minutes(seconds: int) -> str:
    """A wait, never shorter than it is: 9 h 57 min."""
    hours, minutes = divmod(-(-seconds // 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
