"""The months of 1m candles. On PostgreSQL each is a table of its own, so that an old one goes at once. A
candle without a month is kept in the rest, and moves when its month is made."""

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

MINUTES = "market_candle_1m"
REST = f"{MINUTES}_rest"
AHEAD = 2

# A long read, such as a backup, must not make everybody else wait behind this.
PATIENCE = "SET LOCAL lock_timeout = '500ms'"


def month_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def next_month(month: datetime) -> datetime:
    return datetime(month.year + month.month // 12, month.month % 12 + 1, 1, tzinfo=UTC)


def ensure_months(now: datetime) -> list[datetime]:
    """Make the coming months, and those that candles wait for; returns what was missing."""
    if connection.vendor != "postgresql":
        return []
    coming = [month_of(now)]
    for _ in range(AHEAD):
        coming.append(next_month(coming[-1]))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT DISTINCT date_trunc('month', opened_at, 'UTC') FROM {REST}")  # noqa: S608 - names of our own
        waiting = [month for (month,) in cursor.fetchall()]
    return make_months([*coming, *waiting])


def make_months(moments: Iterable[datetime]) -> list[datetime]:
    """Make the months of some moments. Looked up each time, as to remember would outlive a rollback."""
    months = {name_of(at): month_of(at) for at in moments} if connection.vendor == "postgresql" else {}
    if not (months and _missing(months)):
        return []
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(PATIENCE)
        # One process makes months at a time, and nothing comes to the rest that is moved out of it.
        cursor.execute(f"LOCK TABLE {REST} IN ACCESS EXCLUSIVE MODE")
        missing = _missing(months)
        for name in missing:
            _make(cursor, name, months[name])
        cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
    return [months[name] for name in missing]


def made() -> list[datetime]:
    """The months there are, oldest first."""
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid "
            "WHERE inhparent = %s::regclass AND relname != %s ORDER BY relname",
            [MINUTES, REST],
        )
        names = [name.removeprefix(f"{MINUTES}_") for (name,) in cursor.fetchall()]
    return [datetime.strptime(name, "%Y_%m").replace(tzinfo=UTC) for name in names]


def drop(month: datetime) -> int:
    """Take a month away with all its candles; returns how many there were."""
    name = name_of(month)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {name}")  # noqa: S608 - names of our own
        (count,) = cursor.fetchone()
        cursor.execute(PATIENCE)
        cursor.execute(f"DROP TABLE {name}")
    return int(count)


def name_of(at: datetime) -> str:
    return f"{MINUTES}_{month_of(at):%Y_%m}"


def _missing(names: Iterable[str]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT n FROM unnest(%s::text[]) n WHERE to_regclass(n) IS NULL ORDER BY n", [[*names]]
        )
        return [name for (name,) in cursor.fetchall()]


def _make(cursor: CursorWrapper, name: str, month: datetime) -> None:
    """Attached when it is ready: made in place it would lock all candles and not only the rest."""
    span = [month, next_month(month)]
    cursor.execute(f"CREATE TABLE {name} (LIKE {MINUTES} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)")
    cursor.execute(
        f"WITH moved AS (DELETE FROM {REST} WHERE opened_at >= %s AND opened_at < %s RETURNING *) "  # noqa: S608 - names of our own
        f"INSERT INTO {name} SELECT * FROM moved",
        span,
    )
    start, end = (f"'{at.isoformat()}'" for at in span)
    cursor.execute(f"ALTER TABLE {MINUTES} ATTACH PARTITION {name} FOR VALUES FROM ({start}) TO ({end})")
