"""Where the open journal is, and whether this installation can make files of it."""

from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

from .journal import TickJournal

LACKS_PYARROW = (
    "pyarrow is missing, with which the archive writes and reads Parquet: install it (the extra `archive`)"
)


def journal_folder() -> TickJournal:
    return TickJournal(Path(settings.VAR_DIR) / "ticks")


def has_pyarrow() -> bool:
    return find_spec("pyarrow") is not None
