"""What the tables of the market do in their own way on each kind of database: rows that replace others, many
at once, and 1m candles, of which PostgreSQL has a table for each month."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection, models, transaction
from django.db.backends.utils import CursorWrapper

from core.database import ask, database, fetch

# On PostgreSQL each month is a table of its own, so that an old one goes at once. A candle without a month is
# kept in the rest, and moves when its month is made.
MINUTES = "market_candle_1m"
REST = f"{MINUTES}_rest"
AHEAD = 2
# A long read, such as a backup, must not make everybody else wait behind this.
PATIENCE_S = 0.5

Rows = Sequence[Sequence[Any]]
Spelling = Callable[[Sequence[Any]], Any]
TYPES = {
    "DecimalField": "numeric",
    "DateTimeField": "timestamptz",
    "JSONField": "jsonb",
    "PositiveBigIntegerField": "bigint",
    "BigIntegerField": "bigint",
    "PositiveSmallIntegerField": "smallint",
    "OneToOneField": "bigint",
    "ForeignKey": "bigint",
    "BooleanField": "boolean",
    "CharField": "text",
}


class Upsert:
    """Of some columns of a model, the first of which are its key. Past the ORM, which takes three times as
    long."""

    def __init__(
        self, model: type[models.Model], *columns: str, key_columns: int = 1, only_changed: bool = False
    ) -> None:
        """With `only_changed` PostgreSQL does not write again what is there: an update leaves a dead row."""
        self._key_columns = key_columns
        table, key, others = model._meta.db_table, ", ".join(columns[:key_columns]), columns[key_columns:]
        fields = {field.column: field for field in model._meta.concrete_fields}
        insert = f"INSERT INTO {table} ({', '.join(columns)})"
        changes = ", ".join(f"{name} = excluded.{name}" for name in others)
        replace = f"ON CONFLICT ({key}) DO UPDATE SET {changes}"
        types = ", ".join(f"%s::{TYPES[fields[name].get_internal_type()]}[]" for name in columns)
        self.one = f"{insert} VALUES ({', '.join(['%s'] * len(columns))}) {replace}"
        self.arrays = f"{insert} SELECT * FROM unnest({types}) {replace}"  # noqa: S608 - names of our own
        if only_changed:
            old, new = (", ".join(f"{row}.{name}" for name in others) for row in (table, "excluded"))
            self.arrays += f" WHERE ({old}) IS DISTINCT FROM ({new})"

    def put(self, rows: Iterable[Sequence[Any]]) -> None:
        """As the database takes them: see `decimal_text` and `time_text` in checkpoints.py."""
        # Two writers must lock the same rows in the same order.
        ordered = sorted(rows, key=lambda row: tuple(row[: self._key_columns]))
        if ordered:
            market_tables().put(self, ordered)


class OnPostgresql:
    opened_ms = "extract(epoch FROM opened_at)::bigint * 1000"

    def put(self, upsert: Upsert, rows: Rows, spelled: Spelling = list) -> None:
        """`spelled` makes an array of each column but the last."""
        *columns, last = zip(*rows, strict=True)
        with connection.cursor() as cursor:
            cursor.execute(upsert.arrays, [*map(spelled, columns), list(last)])

    def ensure_months(self, now: datetime) -> list[datetime]:
        """Make the coming months, and those that candles wait for; returns what was missing."""
        coming = [month_of(now)]
        for _ in range(AHEAD):
            coming.append(next_month(coming[-1]))
        waiting = fetch(f"SELECT DISTINCT date_trunc('month', opened_at, 'UTC') FROM {REST}")  # noqa: S608 - names of our own
        return self.make_months([*coming, *(month for (month,) in waiting)])

    def make_months(self, moments: Iterable[datetime]) -> list[datetime]:
        """Make the months of some moments. Looked up each time, as to remember would outlive a rollback."""
        months = {name_of(at): month_of(at) for at in moments}
        if not (months and self._missing(months)):
            return []
        with transaction.atomic(), connection.cursor() as cursor:
            database().wait_for_others(PATIENCE_S)
            # One process makes months at a time, and nothing comes to the rest that is moved out of it.
            cursor.execute(f"LOCK TABLE {REST} IN ACCESS EXCLUSIVE MODE")
            missing = self._missing(months)
            for name in missing:
                self._make(cursor, name, months[name])
            cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
        return [months[name] for name in missing]

    def months(self) -> list[datetime]:
        """Those there are, oldest first."""
        names = fetch(
            "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid "
            "WHERE inhparent = %s::regclass AND relname != %s ORDER BY relname",
            [MINUTES, REST],
        )
        return [datetime.strptime(name, f"{MINUTES}_%Y_%m").replace(tzinfo=UTC) for (name,) in names]

    def _missing(self, names: Iterable[str]) -> list[str]:
        missing = "SELECT n FROM unnest(%s::text[]) n WHERE to_regclass(n) IS NULL ORDER BY n"
        return [name for (name,) in fetch(missing, [[*names]])]

    def _make(self, cursor: CursorWrapper, name: str, month: datetime) -> None:
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


class OnSqlite:
    """All candles are in one table."""

    opened_ms = "CAST(strftime('%%s', opened_at) AS integer) * 1000"

    def put(self, upsert: Upsert, rows: Rows, spelled: Spelling = list) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(upsert.one, rows)

    def no_months(self, _: Any = None) -> list[datetime]:
        return []

    ensure_months = make_months = months = no_months


def market_tables() -> OnPostgresql | OnSqlite:
    """Of the connection that is in force where it is asked."""
    return OnPostgresql() if connection.vendor == "postgresql" else OnSqlite()


def month_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def next_month(month: datetime) -> datetime:
    return datetime(month.year + month.month // 12, month.month % 12 + 1, 1, tzinfo=UTC)


def name_of(at: datetime) -> str:
    return f"{MINUTES}_{month_of(at):%Y_%m}"


def drop(month: datetime) -> int:
    """Take a month away with all its candles; returns how many there were."""
    name = name_of(month)
    with transaction.atomic(), connection.cursor() as cursor:
        count = ask(f"SELECT count(*) FROM {name}")  # noqa: S608 - names of our own
        database().wait_for_others(PATIENCE_S)
        cursor.execute(f"DROP TABLE {name}")
    return int(count)
