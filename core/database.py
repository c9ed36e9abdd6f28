"""The errors of an unavailable database, and queries that are compiled once."""

from typing import Any, TypeVar

from django.db import Error, InterfaceError, OperationalError, connection
from django.db.models import F, Manager, Model, QuerySet
from django.db.utils import InternalError as DatabaseRefusal

from core.contract.errors import Overloaded

# The database is away or busy, or has ended a transaction that was idle for too long, as after a standstill
# of the machine. Any other error is a fault of ours and would come again.
TRANSIENT = (OperationalError, InterfaceError, DatabaseRefusal, Overloaded)

# Everything that keeps us from an answer, our own faults included.
UNANSWERED = (Error, Overloaded)


def wait_for_others(at_most_s: float) -> None:
    """For each lock of this transaction. The default of PostgreSQL is to wait without limit, that of
    SQLite its `timeout`."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{at_most_s * 1000:.0f}"])


class CompiledQuery:
    """A query as the ORM wrote it. Its rows hold the driver's own values: compiling the query and
    converting Decimals, UUIDs and times costs several times what the database needs to answer."""

    def __init__(self, query: QuerySet[Any, Any]) -> None:
        self._sql, self._params = query.query.sql_with_params()

    def rows(self) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(self._sql, self._params)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


M = TypeVar("M", bound=Model)


def spend(uses: Manager[M], limit: int, **whose: Any) -> bool:
    """Count one use if the day's allowance has room; the row count decides, so races cannot."""
    uses.get_or_create(**whose)
    return uses.filter(**whose, used__lt=limit).update(used=F("used") + 1) == 1
