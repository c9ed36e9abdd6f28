"""What stands in a database from the first change until all of a copy is there and verified. Meanwhile
nobody starts on it."""

from collections.abc import Callable, Mapping
from io import StringIO
from typing import NamedTuple

import msgspec
from django.core.management import call_command
from django.core.management.base import CommandError

from accounts.models import Account
from core.events.outbox import ControlEvent
from core.process import UNFINISHED
from signals_feed.models import Announcement

from .stores import Key, Refused, Store

Say = Callable[[str], None]
DESPITE_LEDGER = "--despite-ledger"
# Numbers of rows that outlive them: no foreign key holds the rows there.
NAMED_ELSEWHERE = (
    (Account, ControlEvent, "account_id"),
    (ControlEvent, Announcement, "position"),
)


class Unfinished(msgspec.Struct):
    source: str = ""
    """Of a move. A restore has none, because it begins anew."""
    numbers: dict[str, int] = {}
    """The last that each table gave to a row before its rows were deleted."""
    done: dict[str, int] = {}
    """Rows of each table."""
    last: dict[str, Key] = {}


def found(store: Store) -> Unfinished | None:
    if UNFINISHED not in store.names():
        return None
    rows = store.ask(f"SELECT what FROM {UNFINISHED}")  # noqa: S608 - a name of our own
    return msgspec.json.decode(str(rows[0][0]), type=Unfinished) if rows else Unfinished()


def note(store: Store, unfinished: Unfinished) -> None:
    """In the transaction of what it tells of."""
    text = msgspec.json.encode(unfinished).decode().replace("'", "''")
    store.tell(f"CREATE TABLE IF NOT EXISTS {UNFINISHED} (what text)")
    store.tell(f"DELETE FROM {UNFINISHED}")  # noqa: S608 - a name of our own
    store.tell(f"INSERT INTO {UNFINISHED} VALUES ('{text}')")  # noqa: S608 - quoted


def numbers_given(store: Store) -> dict[str, int]:
    """By the database as it is, and as it was before its rows were deleted."""
    unfinished = found(store)
    return greater(store.numbers(), unfinished.numbers if unfinished else {})


def greater(*given: Mapping[str, int]) -> dict[str, int]:
    """Of each table the greatest number."""
    return {table: max(each.get(table, 0) for each in given) for table in set().union(*given)}


class Ending(NamedTuple):
    """What must hold of a copy before anybody starts on it."""

    numbers: Mapping[str, int]
    """Those that were given, here or where the rows come from."""
    head: tuple[int, str]
    """Position and hash of the ledger's last entry."""
    despite_ledger: bool


def finish(store: Store, ending: Ending, say: Say) -> None:
    """Repeated, it does the same again."""
    store.number_after(ending.numbers)
    say("Migrating to this version.")
    # It also puts up the triggers that guard the ledger.
    call_command("migrate", verbosity=0, interactive=False)
    # The columns that name them may be new.
    store.number_after(numbers_named(store))
    check_ledger(ending, say)
    store.tell(f"DROP TABLE {UNFINISHED}")


def numbers_named(store: Store) -> dict[str, int]:
    last = {}
    for model, naming, column in NAMED_ELSEWHERE:
        question = f"SELECT coalesce(max({column}), 0) FROM {naming._meta.db_table}"  # noqa: S608 - names of our own
        last[model._meta.db_table] = int(str(store.ask(question)[0][0]))
    return last


def check_ledger(ending: Ending, say: Say) -> None:
    position, hash_ = ending.head
    noted, said = [f"--head={position}:{hash_}"] if position else [], StringIO()
    try:
        call_command("verify_ledger", *noted, stdout=said)
    except CommandError as fault:
        if not ending.despite_ledger:
            way_out = f"Nothing starts on this copy, unless {DESPITE_LEDGER} finishes it as it is."
            raise Refused(f"{fault} {way_out}") from None
        say(str(fault))
    else:
        say(said.getvalue().strip())
