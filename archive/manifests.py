"""What a manifest says of a day: each file with its digest, and where the ledger ended."""

from datetime import date
from typing import NamedTuple

import msgspec

from core.plain_json import encode

from .layout import BadPath, parse

VERSION = 1
# Of one symbol and day; beyond that they are told as one.
MOST_HOLES = 20


class ManifestFile(msgspec.Struct):
    path: str
    kind: str
    """ticks or candles."""
    symbol: str
    sha256: str
    bytes: int
    rows: int
    sources: list[str]
    """Whose data it holds: it is not to be handed on where one of them may not be."""


class LedgerAt(msgspec.Struct):
    sequence: int
    hash: str


class Hole(msgspec.Struct):
    """Ticks that were accepted and are not in the file, between two times: at most the whole day."""

    symbol: str
    start: str
    end: str
    missing: int | None
    """How many, with those of the days beside where it goes on there; null where nobody knows."""
    lost: bool = False
    """Their file is gone. Nobody knows which numbers they had, so nothing fills it."""


class ArchiveManifest(msgspec.Struct):
    day: str
    version: int
    made_at: str
    complete: bool
    holes: list[Hole]
    ledger: LedgerAt
    """The last entry of the day."""
    files: list[ManifestFile]


class BadManifest(ValueError):
    """It is not what is written here."""


def encoded(manifest: ArchiveManifest) -> bytes:
    return msgspec.json.format(encode(manifest), indent=2) + b"\n"


def decoded(data: bytes) -> ArchiveManifest:
    try:
        manifest = msgspec.json.decode(data, type=ArchiveManifest)
    except msgspec.MsgspecError as error:
        raise BadManifest(f"it is not a manifest ({error})") from None
    if manifest.version != VERSION:
        raise BadManifest(f"it is of version {manifest.version}, and this program reads {VERSION}")
    return manifest


def decoded_of(day: date, data: bytes) -> ArchiveManifest:
    """Raises BadManifest as well where it names what is not of that day: such a path leads anywhere."""
    manifest = decoded(data)
    if manifest.day != str(day):
        raise BadManifest(f"it is of {manifest.day}")
    for file in manifest.files:
        try:
            is_so = parse(file.path) == (file.kind, file.symbol, day)
        except BadPath:
            is_so = False
        if not is_so:
            raise BadManifest(
                f"it names {file.path!r}, which is not a file of that day, or differs from what it says"
            )
    return manifest


class NumberGap(NamedTuple):
    """A hole in the numbers of one symbol."""

    start_ms: int
    end_ms: int
    missing: int | None
    is_lost: bool = False


def joined(gaps: list[NumberGap]) -> list[NumberGap]:
    if len(gaps) <= MOST_HOLES:
        return gaps
    lost = [gap for gap in gaps if gap.is_lost]
    gaps = [gap for gap in gaps if not gap.is_lost]
    known = [gap.missing for gap in gaps if gap.missing is not None]
    missing = sum(known) if len(known) == len(gaps) else None
    return [*lost, NumberGap(gaps[0].start_ms, gaps[-1].end_ms, missing)]
