"""What keeps the ledger in the order in which it was written, as conditions of triggers. The version before
knows none of these triggers: it leaves them standing, and what it writes passes them."""

from signals_feed.contradictions import WRITTEN_WITHIN_MS
from signals_feed.judge import ARM_WITHIN_MS
from signals_feed.record import RULES

from .ledger import NO_SIGNAL
from .trigger_rules import BEGUN, ENTRY, SIGNAL, Guard, is_not_replaced

NEEDS = (SIGNAL, "is_demo")
OF_BEGUN = (BEGUN, "rules")


def told(kind: str, also: str = "") -> str:
    """Of the same signal, earlier."""
    own = f"SELECT 1 FROM {ENTRY} e WHERE e.signal = NEW.signal AND e.kind = '{kind}'"  # noqa: S608 - names of our own
    return f"EXISTS ({own}{also})"


def one_before(condition: str) -> str:
    before = f"SELECT 1 FROM {ENTRY} e WHERE e.position = NEW.position - 1"  # noqa: S608 - names of our own
    return f"EXISTS ({before} AND {condition})"


def are_apart(one: str, other: str) -> str:
    """A time that cannot be read is apart from all others."""
    return f"NOT COALESCE(ABS({one} - {other}) <= {WRITTEN_WITHIN_MS // 1000}, FALSE)"


HAS_RULES_2 = told("publish", " AND {e[rules]} = '2'")
BY_RULES_2 = f"({{new[rules]}} = '2' AND NEW.kind = 'publish' OR {HAS_RULES_2})"
# What both databases read as a time has many forms, even words.
IS_TIME = "{new[written]} LIKE '____-__-__T__:__:__.______Z'"
# After the database's clock was set back, entries wait at the last `written` until it has caught up.
NOT_WRITTEN_NOW = (
    f"{are_apart('{new_s[written]}', '{clock}')} AND NOT COALESCE({{new_s[written]}} > {{clock}}"
    f" AND {one_before('{e[written]} = {new[written]}')}, FALSE)"
)
WRITTEN_BEFORE_THE_LAST = one_before("{e_s[written]} > {new_s[written]}")
OWN_S = (
    "CASE NEW.kind WHEN 'publish' THEN {new_s[published_at]} WHEN 'cancel' THEN {new_s[cancelled_at]}"
    " ELSE {new_s[at]} END"
)
IN_TIME = f" AND {{new_s[written]}} <= {{e_s[written]}} + {ARM_WITHIN_MS // 1000}"
IS_FIRST_OF_FILL = " AND e.part = 'fill:1'"
OUT_OF_RULES = (
    # Else whoever can write here makes a rival's gains contradicted, long after they were closed.
    f"NEW.kind IN ('arm', 'fill', 'close_request', 'cancel') AND {told('close')}",
    f"NEW.kind IN ('arm', 'fill', 'close_request') AND NOT {HAS_RULES_2}",
    "NEW.kind = 'arm' AND NEW.part {differs} {new[for]} || ':' || {new[number]}",
    f"NEW.kind = 'archive' AND (NEW.part {{differs}} {{new[day]}} OR NEW.signal <> '{NO_SIGNAL.hex}')",
    f"NEW.kind = 'arm' AND NEW.part = 'fill:1' AND NOT {told('publish', IN_TIME)}",
    f"NEW.kind = 'fill' AND NOT {told('arm', IS_FIRST_OF_FILL)}",
    f"NEW.kind = 'close' AND {HAS_RULES_2} AND ({{new[rules]}} {{differs}} '2'"
    f" OR {{new[close_reason]}} = 'manual' AND NOT {told('close_request')})",
)

ORDER_GUARDS = (
    Guard(
        "ledger_is_written_now",
        ENTRY,
        "INSERT",
        f"{{new[written]}} IS NULL AND (NEW.kind = 'archive' OR {BY_RULES_2})"
        f" OR {{new[written]}} IS NOT NULL AND (NOT {IS_TIME} OR {NOT_WRITTEN_NOW}"
        f" OR {WRITTEN_BEFORE_THE_LAST})",
        "A ledger entry says when it is written, and none is written before the last one.",
        needs=NEEDS,
    ),
    Guard(
        "ledger_keeps_its_rules",
        ENTRY,
        "INSERT",
        " OR ".join(OUT_OF_RULES),
        "A fill follows its arm, which comes in time, and a close, which is the last, rules and requests.",
        needs=NEEDS,
    ),
    Guard(
        "ledger_is_dated_now",
        ENTRY,
        "INSERT",
        f"NEW.kind IN ('publish', 'arm', 'close_request', 'cancel') AND {BY_RULES_2}"
        f" AND {{new[demo]}} {{differs}} {{yes}} AND NOT {told('publish', ' AND {e[demo]} = {yes}')}"
        f" AND {are_apart(OWN_S, '{new_s[written]}')}",
        "Only the entries of the demo are dated other than they are written.",
        needs=NEEDS,
    ),
    Guard(
        "ledger_knows_the_demo",
        ENTRY,
        "INSERT",
        f"NEW.kind = 'publish' AND {{new[demo]}} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {SIGNAL} s"  # noqa: S608 - names of our own
        " WHERE s.id = NEW.signal AND s.is_demo = ({new[demo]} = {yes}))"
        f" OR NEW.kind = 'remove' AND NOT EXISTS (SELECT 1 FROM {SIGNAL} s JOIN {ENTRY} e ON e.signal = s.id"
        " WHERE s.id = NEW.signal AND e.kind = 'publish' AND COALESCE({e[demo]} = {yes}, s.is_demo,"
        f" NOT EXISTS (SELECT 1 FROM {SIGNAL} o WHERE o.user_id = s.user_id AND NOT o.is_demo)))",
        "Only signals that were published as those of the demo are ever removed.",
        needs=NEEDS,
    ),
    Guard(
        "signal_keeps_its_rules",
        SIGNAL,
        "UPDATE",
        "NEW.rules {differs} OLD.rules OR NEW.is_demo {differs} OLD.is_demo"
        " OR NEW.rank_unit {differs} OLD.rank_unit OR OLD.fill_price IS NOT NULL"
        " AND (NEW.fill_price {differs} OLD.fill_price OR NEW.filled_at {differs} OLD.filled_at)",
        "A published signal keeps its rules and its fill, and is of the demo or not for ever.",
        needs=NEEDS,
    ),
    Guard(
        "publisher_is_of_the_demo_or_not",
        SIGNAL,
        "INSERT",
        f"NEW.is_demo <> (SELECT s.is_demo FROM {SIGNAL} s WHERE s.user_id = NEW.user_id"  # noqa: S608 - names of our own
        " AND s.is_demo IS NOT NULL LIMIT 1)",
        "All signals of a publisher are of the demo, or none is.",
        needs=NEEDS,
    ),
    Guard(
        "rules_begin_after_all_before",
        BEGUN,
        "INSERT",
        f"NEW.rules <> {RULES} OR EXISTS (SELECT 1 FROM {SIGNAL} s"  # noqa: S608 - names of our own
        " WHERE s.rules < NEW.rules AND NOT COALESCE(s.is_demo, FALSE) AND s.published_at > NEW.begun_at)",
        "Rules begin after all that was published by those of before.",
        needs=OF_BEGUN,
    ),
    is_not_replaced("rules_begun", BEGUN, "e.rules = NEW.rules", "Rules begin once.", OF_BEGUN),
    *(
        Guard(f"rules_begun_{name}", BEGUN, act, "", "Rules that have begun stay so.", needs=OF_BEGUN)
        for name, act in (("is_frozen", "UPDATE"), ("stays", "DELETE"))
    ),
)
