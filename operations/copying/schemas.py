"""Takes away what is in a database, so that it can be made anew."""

from core.process import UNFINISHED

from .stores import Store, quoted
from .unfinished import Unfinished, note, numbers_given

FUNCTIONS = (
    "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace"
    " AND p.prorettype = 'trigger'::regtype"
    " AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')"
)


def drop_everything(store: Store) -> dict[str, int]:
    """The tables and the functions of their triggers; what is not finished stays marked. Returns the numbers
    that were given."""
    numbers = numbers_given(store)
    names = sorted(store.names() - {UNFINISHED, "sqlite_sequence"})
    if store.vendor == "sqlite":
        store.tell("PRAGMA foreign_keys = OFF")
    store.tell("BEGIN")
    note(store, Unfinished(numbers=numbers))
    for name in names:
        cascade = "" if store.vendor == "sqlite" else " CASCADE"
        store.tell(f"DROP TABLE IF EXISTS {quoted(name)}{cascade}")
    if store.vendor == "postgresql":
        for (function,) in store.ask(FUNCTIONS):
            store.tell(f"DROP FUNCTION {function}")
    store.tell("COMMIT")
    return numbers
