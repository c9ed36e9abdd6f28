"""GET /api/archive: the list of days, and each of their files, whole or in part, as stored."""

from __future__ import annotations

import gzip
import logging
import re
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from hashlib import sha256
from threading import Lock
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
from django.db import Error
from msgspec import Meta
from rest_framework.request import Request

from accounts.authentication import caller_of
from accounts.keys import Caller
from accounts.models import Tier
from archive.manifests import ArchiveManifest, LedgerAt, ManifestFile
from archive.stores import NotStored, archive_store
from core.contract.answers import JSON, Answer
from core.contract.errors import (
    InvalidCursor,
    NotAllowed,
    NotFound,
    Overloaded,
    RangeNotSatisfiable,
    SymbolNotFound,
)
from core.contract.negotiation import OpenBodies, OpenBody, takes_gzip
from core.contract.parameters import (
    LATEST_MS,
    ChoiceParameter,
    IntegerParameter,
    QuerySerializer,
    TextParameter,
    TimeParameter,
    describes,
)
from core.contract.ranges import Cursors
from core.fault_log import LastingFault
from core.plain_json import encode
from core.request_headers import header
from core.threads import in_thread_promptly
from core.times import iso_date
from core.viewset import ApiViewSet
from instruments.catalogue import WITHHELD, catalogue

from .index import (
    AWAY,
    KINDS,
    ArchiveFile,
    FinishedDays,
    Wanted,
    archive_index,
    do_later,
    in_archive_thread,
    is_served,
)

# Files that are not what their manifest says.
logger = logging.getLogger(__name__)
CHANGED = "This file is just being replaced. Try again shortly."
DAMAGED = (
    "This file is damaged in the archive, so it is not served until staff have restored it. Other files are."
)
# Until staff have looked, it is the same.
LOOK_LATER_S = 3600
# A file is put before its manifest, and of a long day with many others between.
REPLACED_WITHIN_S = 60.0


class OtherFile(Exception):
    """The stored file is not the one that the manifest names; the reason completes a sentence about it."""

    def __init__(self, says: str, *, may_be_newer: bool) -> None:
        super().__init__(says)
        self.may_be_newer = may_be_newer


class Suspected(NamedTuple):
    version: tuple[str, str]
    """The digest that it should have, and the store's mark of what is there."""
    since_s: float
    is_told: bool = False


class DamagedFiles:
    """Each is logged once, and refused at once until it is replaced. It asks the store, so call it in a
    thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, Suspected] = {}
        self._lock = Lock()

    def has(self, file: ArchiveFile) -> bool:
        known = self._known.get(file.path)
        if known is None or not known.is_told:
            return False
        if known.version == version_of(file):
            return True
        self._known.pop(file.path, None)
        return False

    def confirms(self, file: ArchiveFile, found: OtherFile) -> bool:
        """Whether it is damage, and no newer file whose manifest is still to come."""
        now_s, version = self._clock(), version_of(file)
        with self._lock:
            known = self._known.get(file.path)
            if known is None or known.version != version:
                known = Suspected(version, now_s)
            is_damage = not found.may_be_newer or now_s - known.since_s >= REPLACED_WITHIN_S
            self._known[file.path] = known._replace(is_told=is_damage or known.is_told)
        if is_damage and not known.is_told:
            logger.error(
                "%s in the archive %s, so it is not served. The command verify_archive tells more; restore "
                "the file from a copy",
                *(file.path, found),
            )
        return is_damage


damaged_files = DamagedFiles()


def version_of(file: ArchiveFile) -> tuple[str, str]:
    return file.sha256, archive_store().marks(file.path).get(file.path, "")


def refuse_damaged(file: ArchiveFile) -> None:
    if damaged_files.has(file):
        raise Overloaded(DAMAGED, retry_after=LOOK_LATER_S)


async def refusal_of(file: ArchiveFile, found: OtherFile) -> Overloaded:
    """After another look at the manifests: what is known of them may be older than the file."""
    archive_index.forget()
    kept = (await archive_index.current()).find(file.path)
    try:
        is_same = kept is not None and kept.file == file
        is_damaged = is_same and await in_archive_thread(damaged_files.confirms, file, found)
    except OSError:
        return Overloaded(AWAY, retry_after=5)
    return Overloaded(DAMAGED, retry_after=LOOK_LATER_S) if is_damaged else Overloaded(CHANGED, retry_after=5)


# Pure: which part of a body is asked for, and whether the client has it already (RFC 9110).
# More digits than any size has, and few enough for int().
MOST_DIGITS = 18
ONE_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII | re.IGNORECASE)
TAG = re.compile(r'(?:W/)?("[^"]*")')


class Part(NamedTuple):
    """From `start` up to `stop`, which is excluded."""

    start: int
    stop: int


class Unsatisfiable(ValueError):
    """Nothing of the body is in that range."""


def part_of(asked: str | None, size: int) -> Part | None:
    """None stands for the whole: nothing was asked for, several ranges were, or what cannot be read."""
    match = ONE_RANGE.fullmatch((asked or "").strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        start, stop = max(0, size - number(last)), size
    elif last and number(last) < number(first):
        return None
    else:
        start, stop = number(first), min(number(last) + 1, size) if last else size
    if start >= stop:
        raise Unsatisfiable
    return Part(start, stop)


def number(digits: str) -> int:
    digits = digits.lstrip("0")
    return int(digits or 0) if len(digits) <= MOST_DIGITS else 10**MOST_DIGITS


def has_already(if_none_match: str | None, tag: str) -> bool:
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or tag in TAG.findall(if_none_match)


def may_have_part(if_range: str | None, tag: str) -> bool:
    """A part of another version would not fit to the one that the client has; a date names none here."""
    return if_range is None or if_range.strip() == tag


# Files as the documentation shows them.
DAY = "2026-11-20"


def sample(path: str, kind: str, symbol: str | None, size: int, rows: int | None) -> ArchiveFile:
    return ArchiveFile(path, kind, symbol, DAY, size, rows, sha256(path.encode()).hexdigest())


CANDLES = sample(f"candles/1m/EURUSD/{DAY}.parquet", "candles", "EURUSD", 48_213, 1440)
MANIFEST = sample(f"manifests/{DAY}.json", "manifest", None, 1204, None)
TICKS = sample(f"ticks/EURUSD/{DAY}.parquet", "ticks", "EURUSD", 1_904_771, 88_412)
MANIFEST_BODY = ArchiveManifest(
    day=DAY,
    version=1,
    made_at="2026-11-21T00:05:12.804Z",
    complete=True,
    holes=[],
    ledger=LedgerAt(431, sha256(b"431").hexdigest()),
    files=[
        ManifestFile(each.path, each.kind, "EURUSD", each.sha256, each.bytes, each.rows or 0, ["kraken"])
        for each in (CANDLES, TICKS)
    ],
)


# Who may have the archive: the keys of tiers that staff opened it to, and never a page.
FOR_PAGES = (
    "Pages have no archive. Ask for it with an API key of your account: the settings panel issues them."
)


async def refuse_without_archive(caller: Caller) -> None:
    if caller.is_page:
        raise NotAllowed(FOR_PAGES)
    if not caller.allowances.archive:
        raise NotAllowed(sentence(caller.allowances.tier, await tiers_with_archive()))


async def tiers_with_archive() -> list[str]:
    try:
        return await in_thread_promptly(lambda: [str(tier) for tier in Tier.objects.filter(archive=True)])
    except (Error, Overloaded):
        # The refusal does not depend on it.
        return []


def sentence(tier: str, others: list[str]) -> str:
    """`tier` is the caller's, as staff named it."""
    has_none = f"The {tier.title()} tier has no archive"
    if not others:
        return f"{has_none}. Ask for another tier in the settings panel."
    have = "has" if len(others) == 1 else "have"
    return f"{has_none}; {' and '.join(others)} {have} it. Ask for another tier in the settings panel."


# GET /api/archive: which files there are.
DAY_MS = 86_400_000
# Of the longest list it leaves a fifth, in two milliseconds; of a short one more than there was.
GZIP_LEVEL, LEAST_PACKED = 5, 1000
WITHOUT = NotAllowed(sentence("free", ["Premium"]))
cursors = Cursors("archive")


class SymbolFilterSerializer(QuerySerializer):
    symbol = TextParameter(help_text="Only files of this instrument; manifests belong to none.")


class ArchiveQuerySerializer(QuerySerializer):
    kind = ChoiceParameter(KINDS, help_text="Only files of this kind.")
    start = TimeParameter(help_text="The first day, such as 2026-11-20, or a time within it.")
    end = TimeParameter(
        help_text="Only days that begin before this day, which is itself excluded, or before this time."
    )
    limit = IntegerParameter(default=100, max_value=500, help_text="Maximum number of files.")
    cursor = TextParameter(
        help_text="`next` of the previous page, with the parameters of its request; only `limit` may differ."
    )


class ArchiveList(msgspec.Struct):
    component: ClassVar[str] = "ArchiveList"

    items: Annotated[Sequence[ArchiveFile], Meta(description="By day, then by path.")]
    count: Annotated[int, Meta(ge=0, description="Files in this response.")]
    next: Annotated[str | None, Meta(description="The cursor of the next page; null on the last page.")]


class ArchiveViewSet(ApiViewSet):
    @describes(
        "listArchive",
        ArchiveList,
        "The files of the archive: ticks and candles by day",
        tag="Archive",
        examples={"A day of one instrument": ArchiveList([CANDLES, MANIFEST, TICKS], 3, None)},
        details="Parquet files (zstd) of finished UTC days, one for each instrument: accepted ticks, and "
        "one-minute candles. The manifest of a day names them with their SHA-256, and where the ledger "
        "of signals ended. A day is available once its manifest is, soon after midnight; the current day "
        "is not.",
        query=[SymbolFilterSerializer, ArchiveQuerySerializer],
        refusals=[
            WITHOUT,
            InvalidCursor(field="cursor"),
            SymbolNotFound("There is no such symbol. Did you mean EURUSD?", field="symbol"),
        ],
    )
    async def list(self, request: Request) -> Answer:
        await refuse_without_archive(caller_of(request))
        days = await archive_index.current()
        symbol = symbol_of(self.parameters(SymbolFilterSerializer)["symbol"], days)
        asked = self.parameters(ArchiveQuerySerializer)
        wanted = wanted_of(symbol, asked)
        return await in_archive_thread(page, days, wanted, asked["limit"], packs=takes_gzip(self.scope))


def wanted_of(symbol: str | None, asked: dict[str, Any]) -> Wanted:
    wanted = Wanted(asked["kind"], symbol)
    if asked["start"] is not None:
        wanted = wanted._replace(first=iso_date(asked["start"]))
    if asked["end"] is not None:
        # A day that has begun before it is listed; the last of all has none after it.
        wanted = wanted._replace(end=iso_date(min(asked["end"] + DAY_MS - 1, LATEST_MS)))
    if asked["cursor"] is not None:
        day, path = cursors.open(asked["cursor"], of_walk(wanted))
        wanted = wanted._replace(after=(day, path))
    return wanted


def of_walk(wanted: Wanted) -> tuple[Any, ...]:
    """What all pages of a walk have in common."""
    return wanted[:-1]


def symbol_of(text: str | None, days: FinishedDays) -> str | None:
    """Also that of a former instrument, as long as there are files of it."""
    if text is None or (text.isascii() and days.has(text.upper())):
        return text and text.upper()
    return catalogue.get_any(text).symbol


def page(days: FinishedDays, wanted: Wanted, limit: int, *, packs: bool) -> Answer:
    withheld = catalogue.withheld
    found = days.page(wanted, limit, lambda kept: is_served(kept, withheld))
    items, following = found[:limit], None
    if len(found) > limit:
        following = cursors.seal(of_walk(wanted), (items[-1].day, items[-1].path))
    body, headers = encode(ArchiveList(items, len(items), following)), {"Vary": "Accept-Encoding"}
    if packs and len(body) >= LEAST_PACKED:
        return Answer(gzip.compress(body, GZIP_LEVEL, mtime=0), {**headers, "Content-Encoding": "gzip"})
    return Answer(body, headers)


unread = LastingFault(logger, "A file of the archive cannot be read")
PARQUET = "application/vnd.apache.parquet"
NO_SUCH_FILE = (
    "The archive has no such file. GET /api/archive lists what it has; the current day is added after "
    "midnight UTC."
)
# What is finished seldom changes; a client that asks again with the ETag costs a request and no bytes.
KEPT_S = 3600
MOST_OF_ACCOUNT, MOST = 32, 128


downloads = OpenBodies(
    MOST_OF_ACCOUNT,
    MOST,
    f"{MOST_OF_ACCOUNT} downloads of your account are under way. Wait until one has ended.",
    retry_after=5,
)


class ArchiveFileViewSet(ApiViewSet):
    lookup_field, lookup_value_regex = "path", ".+?"

    @describes(
        "getArchiveFile",
        ArchiveManifest,
        "A file of the archive",
        tag="Archive",
        examples={"A manifest": MANIFEST_BODY},
        details="Parquet, or JSON for a manifest, byte for byte. Its SHA-256 is the one in the manifest, and "
        "also the `ETag`. With `If-None-Match`, a 304 says that the file is still the same. One range of "
        "bytes in `Range` is answered with 206 and that part, so a download can be resumed, safely with "
        "`If-Range`; several ranges are answered with the whole file. A body that turns out to differ "
        "from its SHA-256 is cut off before its end.",
        other_forms={PARQUET: "A Parquet file (zstd) of ticks or candles."},
        refusals=[WITHOUT, NotFound(NO_SUCH_FILE), RangeNotSatisfiable(1_904_771)],
        headers=["ETag", "Accept-Ranges"],
        has_parts=True,
    )
    async def retrieve(self, request: Request, path: str) -> Answer:
        await refuse_without_archive(caller_of(request))
        file = await self._find(path)
        tag = f'"{file.sha256}"'
        headers = {
            "ETag": tag,
            "Accept-Ranges": "bytes",
            "Cache-Control": f"private, max-age={KEPT_S}",
            "Vary": "X-API-Key",
        }
        if has_already(header(self.scope, b"if-none-match"), tag):
            return Answer(b"", headers, 304)
        headers["Content-Disposition"] = f'attachment; filename="{file.path.replace("/", "-")}"'
        part = self._part(file, tag)
        if part is not None:
            headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{file.bytes}"
        download = downloads.enter(caller_of(request).counted_under)
        try:
            sending = await self._begin(file, part or Part(0, file.bytes))
        except BaseException:
            downloads.leave(download)
            raise
        return Answer(
            b"",
            headers,
            status=200 if part is None else 206,
            media_type=JSON if file.kind == "manifest" else PARQUET,
            streamed=sent(file, download, sending),
            length=file.bytes if part is None else part.stop - part.start,
        )

    async def _find(self, path: str) -> ArchiveFile:
        kept = (await archive_index.current()).find(with_upper_symbol(path))
        if kept is None:
            raise NotFound(NO_SUCH_FILE)
        if not is_served(kept, catalogue.withheld):
            raise NotFound(WITHHELD.format(symbol=kept.file.symbol))
        return kept.file

    def _part(self, file: ArchiveFile, tag: str) -> Part | None:
        """Ranges are of GET alone."""
        if self.request.method != "GET" or not may_have_part(header(self.scope, b"if-range"), tag):
            return None
        try:
            return part_of(header(self.scope, b"range"), file.bytes)
        except Unsatisfiable:
            raise RangeNotSatisfiable(file.bytes) from None

    async def _begin(self, file: ArchiveFile, part: Part) -> Sending:
        """With its first block, so that a store which does not answer is no answer that breaks off."""
        try:
            sending = await in_archive_thread(begin, file, part, is_head=self.request.method == "HEAD")
        except NotStored:
            archive_index.forget()
            raise NotFound(NO_SUCH_FILE) from None
        except OtherFile as found:
            raise await refusal_of(file, found) from None
        except OSError as error:
            raise away(error) from error
        unread.over()
        return sending


async def sent(file: ArchiveFile, download: OpenBody, sending: Sending) -> AsyncGenerator[bytes, None]:
    try:
        block = sending.first
        while block:
            yield block
            block = await in_archive_thread(sending.next)
    except OtherFile as found:
        raise await refusal_of(file, found) from None
    except OSError as error:
        raise away(error) from error
    finally:
        downloads.leave(download)
        do_later(sending.close)


def away(error: OSError) -> Overloaded:
    unread.tell(error)
    return Overloaded(AWAY, retry_after=5)


def begin(file: ArchiveFile, part: Part, *, is_head: bool) -> Sending:
    store = archive_store()
    refuse_damaged(file)
    if (size := store.size(file.path)) != file.bytes:
        raise OtherFile(f"has {size} bytes, and its manifest says {file.bytes}", may_be_newer=True)
    if is_head:
        return Sending(file, part, nothing())
    sending = Sending(file, part, store.open(file.path, part.start, part.stop))
    sending.first = sending.next()
    return sending


def nothing() -> Generator[bytes, None, None]:
    yield from ()


class Sending:
    """In a thread: the blocks of a file, counted, and compared with its digest if they are all of it. The
    last one is only given when all are what they should be."""

    first = b""

    def __init__(self, file: ArchiveFile, part: Part, blocks: Generator[bytes, None, None]) -> None:
        self._file, self._blocks = file, blocks
        self._in_use = Lock()
        self._left = part.stop - part.start
        self._digest = sha256() if self._left == file.bytes else None

    def next(self) -> bytes:
        """Empty after the last one."""
        with self._in_use:
            block = next(self._blocks, b"") if self._left else b""
            self._left -= len(block)
            if self._digest is not None:
                self._digest.update(block)
            is_short = self._left < 0 or (self._left > 0 and not block)
            if is_short or (not self._left and self._is_other()):
                self._blocks.close()
                raise OtherFile("is not what its manifest says", may_be_newer=is_short)
            return block

    def close(self) -> None:
        """Where a client left while a block was read, after that."""
        with self._in_use:
            self._blocks.close()

    def _is_other(self) -> bool:
        return self._digest is not None and self._digest.hexdigest() != self._file.sha256


def with_upper_symbol(path: str) -> str:
    """The case of a symbol does not matter, here as anywhere."""
    folder, _, name = path.rpartition("/")
    above, _, symbol = folder.rpartition("/")
    return f"{above}/{symbol.upper()}/{name}" if above and folder.isascii() else path
