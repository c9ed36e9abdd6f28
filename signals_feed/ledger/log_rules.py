"""The changes of the log of checkpoints that the database refuses, as conditions of triggers: of a checkpoint
only its signatures may be made again, and of a key only how it is sealed and when it stops signing."""

from .trigger_rules import Guard, is_not_replaced

KEY, CHECKPOINT, COSIGNATURE = (
    "transparency_logkey",
    "transparency_signedcheckpoint",
    "transparency_cosignature",
)
LOG_TABLES = {KEY: (KEY, "verifier"), CHECKPOINT: (CHECKPOINT, "note"), COSIGNATURE: (COSIGNATURE, "witness")}
"""Each with a column, because the migrations may not have reached it yet."""


def differ(*names: str) -> str:
    return " OR ".join(f"NEW.{name} {{differs}} OLD.{name}" for name in names)


LOG_GUARDS = (
    Guard(
        "log_key_is_frozen",
        KEY,
        "UPDATE",
        f"{differ('id', 'origin', 'verifier', 'made_at')} OR OLD.signs_until IS NOT NULL"
        " AND (NEW.signs_until IS NULL OR NEW.signs_until > OLD.signs_until)",
        "A key of the log does not change, and signs no longer than it was said to.",
        needs=LOG_TABLES[KEY],
    ),
    is_not_replaced(
        "log_key",
        KEY,
        "e.id = NEW.id OR e.verifier = NEW.verifier OR e.origin = NEW.origin AND e.signs_until IS NULL",
        "A key of the log is made once.",
        LOG_TABLES[KEY],
    ),
    Guard(
        "checkpoint_is_frozen",
        CHECKPOINT,
        "UPDATE",
        f"{differ('id', 'origin', 'size', 'made_at')} OR {{text_of[NEW]}} {{differs}} {{text_of[OLD]}}",
        "A checkpoint does not change.",
        needs=LOG_TABLES[CHECKPOINT],
    ),
    Guard(
        "checkpoint_goes_on",
        CHECKPOINT,
        "INSERT",
        f"EXISTS (SELECT 1 FROM {CHECKPOINT} e"  # noqa: S608 - a name of our own
        " WHERE e.id = NEW.id OR e.origin = NEW.origin AND e.size >= NEW.size)",
        "A checkpoint follows the last one.",
        needs=LOG_TABLES[CHECKPOINT],
    ),
    Guard(
        "cosignature_is_frozen",
        COSIGNATURE,
        "UPDATE",
        differ("id", "checkpoint_id", "witness", "first_at", "first_line"),
        "What a witness said first does not change.",
        needs=LOG_TABLES[COSIGNATURE],
    ),
    is_not_replaced(
        "cosignature",
        COSIGNATURE,
        "e.id = NEW.id OR e.checkpoint_id = NEW.checkpoint_id AND e.witness = NEW.witness",
        "A witness cosigns a checkpoint once.",
        LOG_TABLES[COSIGNATURE],
    ),
    *(
        Guard(f"{table}_stays", table, "DELETE", "", "The log of checkpoints stays.", needs=needs)
        for table, needs in LOG_TABLES.items()
    ),
)
