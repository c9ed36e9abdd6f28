"""Where the files of the archive lie. A path is relative to the archive's root, the same on a disk as in a
bucket."""

import re
from datetime import date
from typing import Literal, NamedTuple

Kind = Literal["ticks", "candles"]
MANIFESTS = "manifests/"
# Says whose archive it is. It is none of the files, so it is neither listed nor served.
OWNER = "archive.json"

# As the database has them: neither a separator nor a name that begins with a dot.
SYMBOL = r"(?P<symbol>[A-Z0-9][A-Z0-9._-]*)"
DAY = r"(?P<day>\d{4}-\d\d-\d\d)"
DATA = re.compile(rf"(?P<kind>ticks|candles/1m)/{SYMBOL}/{DAY}\.parquet", re.ASCII)
MANIFEST = re.compile(rf"manifests/{DAY}\.json", re.ASCII)


class BadPath(ValueError):
    """No path of the archive's."""


class ArchivePath(NamedTuple):
    kind: Literal["ticks", "candles", "manifest"]
    symbol: str
    """Empty for a manifest."""
    day: date


def ticks_path(symbol: str, day: date) -> str:
    return checked(f"ticks/{symbol}/{day}.parquet")


def candles_path(symbol: str, day: date) -> str:
    return checked(f"candles/1m/{symbol}/{day}.parquet")


def manifest_path(day: date) -> str:
    return checked(f"{MANIFESTS}{day}.json")


def checked(path: str) -> str:
    parse(path)
    return path


def is_ours(path: str) -> bool:
    try:
        return bool(checked(path))
    except BadPath:
        return False


def parse(path: str) -> ArchivePath:
    """Raises BadPath for anything but a path that is made here."""
    try:
        if match := DATA.fullmatch(path):
            kind: Kind = "ticks" if match["kind"] == "ticks" else "candles"
            return ArchivePath(kind, match["symbol"], date.fromisoformat(match["day"]))
        if match := MANIFEST.fullmatch(path):
            return ArchivePath("manifest", "", date.fromisoformat(match["day"]))
    except ValueError:
        # A day that no calendar has.
        pass
    raise BadPath(f"{path!r} is not a path of the archive.")
