"""The changes of signals and their ledger that the database refuses, as conditions of triggers."""

from typing import NamedTuple

SIGNAL, EVIDENCE = "signals_feed_signal", "signals_feed_evidence"
ENTRY, HEAD = "signals_feed_ledgerentry", "signals_feed_ledgerhead"
USER, HELD_NAME, BEGUN = "accounts_user", "signals_feed_heldname", "signals_feed_rulesbegun"
FROZEN = (
    *("id", "user_id", "instrument_id", "direction", "entry", "stop_loss", "take_profit"),
    *("tradable_price", "published_at", "expires_at", "token"),
)
IS_DEMO = (
    "EXISTS (SELECT 1 FROM signals_feed_signal s JOIN accounts_account a ON a.user_id = s.user_id "
    "WHERE s.id = NEW.signal AND a.is_demo)"
)
OWN_NAMES = f"(SELECT h.digest FROM {HELD_NAME} h WHERE h.user_id = NEW.id)"  # noqa: S608 - a name of our own


class Guard(NamedTuple):
    """A trigger that raises when its condition holds. What is in braces, each database spells its own way."""

    name: str
    table: str
    act: str
    condition: str
    refusal: str
    only_sqlite: bool = False
    needs: tuple[str, str] | None = None
    """A table and its column, which the migrations may not have reached yet."""


def stays(name: str, table: str, signal: str, refusal: str) -> Guard:
    """Unless the ledger says that it was removed; `signal` is the column that names the signal."""
    removed = "SELECT 1 FROM {entry} e WHERE e.signal = OLD.{signal} AND e.kind = 'remove'"
    condition = f"NOT EXISTS ({removed.format(entry=ENTRY, signal=signal)})"
    return Guard(f"{name}_stays", table, "DELETE", condition, refusal)


def is_not_replaced(
    name: str, table: str, same: str, refusal: str, needs: tuple[str, str] | None = None
) -> Guard:
    """SQLite's INSERT OR REPLACE deletes a row past the triggers that refuse to delete or change it.
    PostgreSQL has nothing like it, and there its unique indexes say the same at less cost."""
    replaced = "SELECT 1 FROM {table} e WHERE {same}"
    condition = f"EXISTS ({replaced.format(table=table, same=same)})"
    return Guard(f"{name}_is_not_replaced", table, "INSERT", condition, refusal, True, needs)


GUARDS = (
    Guard(
        "signal_is_frozen",
        SIGNAL,
        "UPDATE",
        "OLD.status = 'closed' OR "
        + " OR ".join(f"NEW.{term} {{differs}} OLD.{term}" for term in FROZEN)
        + " OR (OLD.cancel_reason <> '' AND (NEW.cancel_reason {differs} OLD.cancel_reason"
        + " OR NEW.cancelled_at {differs} OLD.cancelled_at))",
        "A published signal keeps its terms, and a closed one does not change.",
    ),
    Guard(
        "signal_begins_active",
        SIGNAL,
        "INSERT",
        "NEW.status <> 'active' OR NEW.cancel_reason <> ''",
        "A signal is published active.",
    ),
    stays("signal", SIGNAL, "id", "A published signal stays."),
    is_not_replaced(
        "signal",
        SIGNAL,
        "e.id = NEW.id OR e.user_id = NEW.user_id AND e.token = NEW.token",
        "A signal is published once.",
    ),
    Guard("evidence_is_frozen", EVIDENCE, "UPDATE", "", "Evidence does not change."),
    stays("evidence", EVIDENCE, "signal_id", "Evidence stays."),
    Guard(
        "evidence_is_in_time",
        EVIDENCE,
        "INSERT",
        f"EXISTS (SELECT 1 FROM {ENTRY} e WHERE e.signal = NEW.signal_id AND e.kind = 'close')",  # noqa: S608 - names of our own
        "Evidence comes before the close that it proves.",
    ),
    is_not_replaced(
        "evidence",
        EVIDENCE,
        "e.id = NEW.id OR e.signal_id = NEW.signal_id AND e.kind = NEW.kind",
        "Evidence is given once.",
    ),
    Guard("ledger_is_frozen", ENTRY, "UPDATE", "", "The ledger does not change."),
    Guard("ledger_stays", ENTRY, "DELETE", "", "The ledger stays."),
    Guard(
        "ledger_goes_on",
        ENTRY,
        "INSERT",
        f"NEW.position <> 1 AND NOT EXISTS (SELECT 1 FROM {ENTRY} e"  # noqa: S608 - names of our own
        " WHERE e.position = NEW.position - 1 AND e.hash = NEW.previous)"
        f" OR NEW.kind = 'remove' AND NOT {IS_DEMO}",
        "A ledger entry follows the last one, and only the signals of the demo are ever removed.",
    ),
    is_not_replaced(
        "ledger",
        ENTRY,
        "e.position >= NEW.position OR e.signal = NEW.signal AND e.kind = NEW.kind AND e.part = NEW.part",
        "A ledger entry is written once.",
        (ENTRY, "part"),
    ),
    Guard(
        "ledger_head_goes_on",
        HEAD,
        "UPDATE",
        "NEW.position <= OLD.position OR NOT EXISTS"  # noqa: S608 - names of our own
        f" (SELECT 1 FROM {ENTRY} e WHERE e.position = NEW.position AND e.hash = NEW.hash)",
        "The head of the ledger moves to a later entry.",
    ),
    Guard("ledger_head_stays", HEAD, "DELETE", "", "The head of the ledger stays."),
    is_not_replaced("ledger_head", HEAD, "true", "The ledger has one head."),
    Guard(
        "publisher_holds_name",
        USER,
        "UPDATE",
        f"NEW.username {{differs}} OLD.username AND EXISTS {OWN_NAMES}"
        f" AND {{digest_of_name}} NOT IN {OWN_NAMES}",
        "A publisher takes only a name that is held for them.",
        needs=(HELD_NAME, "user_id"),
    ),
)
