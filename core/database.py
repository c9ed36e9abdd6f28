"""The errors of an unavailable database, what each kind of database does in its own way, and queries that are
compiled once."""

from datetime import datetime
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connection, connections
from django.db.models import F, Manager, Model, QuerySet
from django.db.models.functions import Now
from django.db.utils import InternalError as DatabaseRefusal
from django.utils import timezone

from core.contract.errors import Overloaded

# The database is away or busy, or has ended a transaction that was idle for too long, as after a standstill
# of the machine. Any other error is a fault of ours and would come again.
TRANSIENT = (OperationalError, InterfaceError, DatabaseRefusal, Overloaded)

# Everything that keeps us from an answer, our own faults included.
UNANSWERED = (Error, Overloaded)


def fetch(question: str, parameters: Any = None, using: str = DEFAULT_DB_ALIAS) -> list[Any]:
    """All rows, as the driver gives them."""
    with connections[using].cursor() as cursor:
        cursor.execute(question, parameters)
        rows: list[Any] = cursor.fetchall()
        return rows


def ask(question: str, *parameters: Any) -> Any:
    """The first value of the first row."""
    return fetch(question, parameters or None)[0][0]


class OnPostgresql:
    is_shared = True
    """Other machines may use it, and it may be away while they and this one run."""
    clock = "SELECT CLOCK_TIMESTAMP()"
    key_share = "FOR KEY SHARE"
    written_now = Now

    def now(self) -> datetime:
        """Of the one clock that all machines have in common."""
        return ask("SELECT statement_timestamp()")  # type: ignore[no-any-return]

    def takes_no_writes(self) -> bool:
        """As a standby."""
        return bool(ask("SELECT current_setting('transaction_read_only')") == "on")

    def lock(self, *numbers: int, shared: bool = False) -> None:
        """One or two numbers, until the end of the transaction. Any will do, as long as nothing else in the
        database is locked under them."""
        places = ", ".join(["%s"] * len(numbers))
        ask(f"SELECT pg_advisory_xact_lock{'_shared' * shared}({places})", *numbers)

    def wait_for_others(self, at_most_s: float) -> None:
        """For each lock of this transaction. By itself it waits without limit."""
        ask("SELECT set_config('lock_timeout', %s, true)", f"{at_most_s * 1000:.0f}")

    def see_one_state(self) -> None:
        """In the whole of a transaction that has just begun."""
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


class OnSqlite:
    """A file of this machine, with one writer at a time, for which others wait as long as `timeout` says."""

    is_shared = False
    clock = "SELECT STRFTIME('%Y-%m-%dT%H:%M:%f000Z', 'now')"
    key_share = ""
    written_now = staticmethod(timezone.now)

    def now(self) -> datetime:
        return timezone.now()

    def takes_no_writes(self) -> bool:
        """Asked all the same, because a file that cannot be read is a fault."""
        return bool(ask("SELECT 0"))

    def need_nothing(self, *_: Any, **__: Any) -> None:
        """Its writer is alone, and a transaction that reads sees one state by itself."""

    lock = wait_for_others = see_one_state = need_nothing


def database() -> OnPostgresql | OnSqlite:
    """Of the connection that is in force where it is asked."""
    return OnPostgresql() if connection.vendor == "postgresql" else OnSqlite()


class CompiledQuery:
    """A query as the ORM wrote it. Its rows hold the driver's own values: compiling the query and
    converting Decimals, UUIDs and times costs several times what the database needs to answer."""

    def __init__(self, query: QuerySet[Any, Any]) -> None:
        self._sql, self._params = query.query.sql_with_params()

    def rows(self) -> list[tuple[Any, ...]]:
        return fetch(self._sql, self._params)


M = TypeVar("M", bound=Model)


def spend(uses: Manager[M], limit: int, **whose: Any) -> bool:
    """Count one use if the day's allowance has room; the row count decides, so races cannot."""
    uses.get_or_create(**whose)
    return uses.filter(**whose, used__lt=limit).update(used=F("used") + 1) == 1
