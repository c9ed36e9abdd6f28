"""Ticks of finished days for `GET /api/market/{symbol}/ticks`: older ones than the engine keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from archive.manifests import ManifestFile
from archive.proving.files import CheckedFile, NotAsListed
from archive.stores import NotStored, archive_store
from core.contract.errors import Overloaded
from core.times import iso_date
from instruments.catalogue import catalogue
from market.engine import FoundTicks, KeptTick, TickPlace, WantedTicks, pack_ticks

from .index import AWAY, ArchiveFile, Wanted, archive_index, in_archive_thread, is_served
from .journal import has_pyarrow
from .views import unread

# More days than any walk needs for a page; each is opened only once the one before has been read.
MOST_DAYS = 10_000
COLUMNS = ("seq", "time", "bid", "ask", "volume", "epoch")
BATCH = 50_000


async def read_archived(wanted: WantedTicks, until: TickPlace | None) -> FoundTicks:
    """`until` is the first tick that is kept elsewhere."""
    if not has_pyarrow():
        return FoundTicks()
    first_ms = wanted.start_ms if wanted.after is None else max(wanted.start_ms, wanted.after.time_ms)
    end_ms = wanted.end_ms if until is None else min(wanted.end_ms, until.time_ms + 1)
    if first_ms >= end_ms:
        return FoundTicks()
    days = Wanted("ticks", wanted.symbol, iso_date(first_ms), iso_date(end_ms - 1) + "~")
    withheld, current = catalogue.withheld, await archive_index.current()
    files = current.page(days, MOST_DAYS, lambda kept: is_served(kept, withheld))
    try:
        found = await in_archive_thread(read, files, wanted, first_ms, end_ms, until)
    except (OSError, NotStored, NotAsListed) as error:
        # A part is never taken for the whole.
        unread.tell(error)
        raise Overloaded(AWAY, retry_after=5) from error
    unread.over()
    return found


def read(
    files: Sequence[ArchiveFile], wanted: WantedTicks, first_ms: int, end_ms: int, until: TickPlace | None
) -> FoundTicks:
    after, epoch, ticks = wanted.after, "", list[KeptTick]()
    for tick, of in _rows(files, first_ms, end_ms):
        if after is not None and (tick.time_ms, tick.seq) <= (after.time_ms, after.seq):
            continue
        if until is not None and of == until.epoch and tick.seq >= until.seq:
            continue
        if len(ticks) == wanted.limit or (ticks and of != epoch):
            return FoundTicks(epoch, pack_ticks(ticks), has_more=True)
        ticks.append(tick)
        epoch = of
    return FoundTicks(epoch, pack_ticks(ticks))


def _rows(files: Sequence[ArchiveFile], first_ms: int, end_ms: int) -> Iterator[tuple[KeptTick, str]]:
    """In the order of times and numbers, as the files have them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for each in files:
        named = ManifestFile(
            each.path, each.kind, each.symbol or "", each.sha256, each.bytes, each.rows or 0, []
        )
        parquet = CheckedFile(archive_store(), named).parquet
        for batch in parquet.iter_batches(BATCH, columns=[*COLUMNS]):
            at_ms = batch["time"].cast(pa.int64())
            within = batch.filter(pc.and_(pc.greater_equal(at_ms, first_ms), pc.less(at_ms, end_ms)))
            values = [
                (within[name].cast(pa.int64()) if name == "time" else within[name]).to_pylist()
                for name in COLUMNS
            ]
            for *tick, epoch in zip(*values, strict=True):
                yield KeptTick._make(tick), epoch
