"""The manifest of a day: where each file is, its digest, and where the ledger ended."""

import re
from datetime import date
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from core.plain_json import encode
from core.struct_schemas import Symbol

# Where the files of the archive lie. A path is relative to the archive's root, the same on a disk as in a
# bucket.
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


VERSION = 1
# Of one symbol and day; more are listed as one.
MOST_HOLES = 20


class ManifestFile(msgspec.Struct):
    path: Annotated[str, Meta(description="Its path in the archive.")]
    kind: Annotated[str, Meta(description="`ticks` or `candles`.")]
    symbol: Symbol
    sha256: Annotated[str, Meta(description="Of the file's bytes.")]
    bytes: Annotated[int, Meta(description="Size of the file.")]
    rows: Annotated[int, Meta(description="Ticks or candles.")]
    # The file is not passed on if one of them must not be.
    sources: Annotated[list[str], Meta(description="The sources whose data it holds.")]


class LedgerAt(msgspec.Struct):
    sequence: Annotated[int, Meta(description="Position of the entry in the ledger.")]
    hash: Annotated[str, Meta(description="Hash of the entry.")]


class Hole(msgspec.Struct):
    """Ticks that were accepted and are not in the file, between two times: at most the whole day."""

    symbol: Symbol
    start: Annotated[str, Meta(description="When it begins.")]
    end: Annotated[str, Meta(description="When it ends.")]
    missing: Annotated[
        int | None,
        Meta(
            description="Ticks that are missing, including those of the adjacent days if it continues there; "
            "null if unknown."
        ),
    ]
    # Their numbers are unknown, so nothing fills the gap.
    lost: Annotated[bool, Meta(description="Whether their file is gone, so that nothing can fill it.")] = (
        False
    )


class ArchiveManifest(msgspec.Struct):
    day: Annotated[str, Meta(description="The UTC day.")]
    version: Annotated[int, Meta(description="The version of the manifest's format.")]
    made_at: Annotated[str, Meta(description="When the manifest was made.")]
    complete: Annotated[bool, Meta(description="Whether no accepted tick is missing.")]
    holes: Annotated[list[Hole], Meta(description="Where ticks are missing.")]
    ledger: Annotated[
        LedgerAt, Meta(description="The last entry of the signals' ledger on that day or before.")
    ]
    files: Annotated[list[ManifestFile], Meta(description="The files of the day.")]


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
    """Raises BadManifest also if it names a file of another day: such a path could lead anywhere."""
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
