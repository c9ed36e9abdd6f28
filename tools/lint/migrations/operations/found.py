"""What is wrong with an operation of a migration, and who may answer for it all the same."""

from __future__ import annotations

from typing import Literal, NamedTuple

USES_IT = "an older version still uses it: do without it now, and take it away one release later (contracts)"
ON_CONFLICT = "ON CONFLICT of an older version needs it; take it away one release later (contracts)"
REFUSES = "an older version relies on it to refuse rows"
BY_ITSELF = "give it a migration of its own with core.schema.ConcurrentIndex"
IS_HARMLESS = "or say in tools/lint/migrations/harmless.py why the last release can live with it"


class Found(NamedTuple):
    what: str
    excuse: Literal["", "contracts", "harmless"] = ""
    """contracts: a release that does without it; harmless: a reason in harmless.py; else nothing."""

    @property
    def why(self) -> str:
        return f"{self.what}; {IS_HARMLESS}" if self.excuse == "harmless" else self.what


def reads_all_rows(what: str) -> Found:
    return Found(f"{what}, and reads all rows while nobody may write them", "harmless")
