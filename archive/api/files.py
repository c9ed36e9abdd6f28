"""GET /api/archive/{path}: a file of the archive, whole or a part of it, as it lies in the store."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Generator
from hashlib import sha256
from threading import Lock

from accounts.viewset import KeyedViewSet
from archive.manifests import ArchiveManifest
from archive.stores import NotStored, archive_store
from core.contract.answers import JSON, Answer
from core.contract.errors import NotFound, Overloaded, RangeNotSatisfiable
from core.contract.open_bodies import OpenBodies, OpenBody
from core.contract.schema import describes
from core.fault_log import LastingFault
from core.request_headers import header
from instruments.catalogue import WITHHELD, catalogue

from .access import refuse_without_archive
from .damage import OtherFile, refusal_of, refuse_damaged
from .days import ArchiveFile, is_served
from .index import archive_index
from .listing import WITHOUT
from .ranges import Part, Unsatisfiable, has_already, may_have_part, part_of
from .samples import MANIFEST_BODY
from .threads import AWAY, do_later, in_archive_thread

logger = logging.getLogger(__name__)
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


class ArchiveFileViewSet(KeyedViewSet):
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
    async def retrieve(self, path: str) -> Answer:
        await refuse_without_archive(self.caller)
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
        download = downloads.enter(self.caller.counted_under)
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
