"""Files of a day, read back."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from datetime import date
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from archive.folding.parquet import METADATA
from archive.manifests import ManifestFile
from archive.stores import ArchiveStore

from .rebuild import PRICES, ArchivedTick, TickFacts

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BATCH = 50_000
COLUMNS = {"time_ms": "time"}


class NotAsListed(Exception):
    """A file is not what the manifest says; the reason goes on a sentence about it."""


class ArchivedMinute(NamedTuple):
    """A row of a file of candles, or of the table."""

    open: float
    high: float
    low: float
    close: float
    volume: float
    ask_high: float | None
    ask_low: float | None
    basis: str
    source: str


class CheckedFile:
    """One whose bytes are those of its digest."""

    def __init__(self, store: ArchiveStore, file: ManifestFile) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        data = store.read(file.path)
        if len(data) != file.bytes:
            raise NotAsListed(f"has {len(data)} bytes, and the manifest says {file.bytes}")
        if (found := hashlib.sha256(data).hexdigest()) != file.sha256:
            raise NotAsListed(f"was altered: its SHA-256 is {found}, and the manifest says {file.sha256}")
        try:
            self.parquet: pq.ParquetFile = pq.ParquetFile(BytesIO(data))
            self.about: dict[str, Any] = msgspec.json.decode(self.parquet.metadata.metadata[METADATA])
        except (pa.ArrowException, KeyError, TypeError, msgspec.MsgspecError) as error:
            raise NotAsListed(f"is not one of the archive's files ({error})") from None
        if (rows := self.parquet.metadata.num_rows) != file.rows:
            raise NotAsListed(f"has {rows} rows, and the manifest says {file.rows}")

    @property
    def facts(self) -> TickFacts:
        prices = self.about["candle_price"] or ["bid"]
        return TickFacts(prices[-1], self.about["digits"], self.about["before"], self.about["minutes"])

    @property
    def says_when_accepted(self) -> bool:
        """Files of before do not, or not of each tick."""
        if "accepted_ms" not in self.parquet.schema_arrow.names:
            return False
        return bool(self.parquet.read(["accepted_ms"])["accepted_ms"].null_count == 0)

    def ticks(self, accepted: tuple[int, int] | None = None) -> Iterator[ArchivedTick]:
        """All, or those that were accepted from one time up to another."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = [COLUMNS.get(name, name) for name in ArchivedTick._fields]
        columns = [name for name in columns if name in self.parquet.schema_arrow.names]
        for batch in self.parquet.iter_batches(BATCH, columns=columns):
            if accepted is not None:
                at_ms = batch["accepted_ms"]
                within = pc.greater_equal(at_ms, accepted[0]), pc.less_equal(at_ms, accepted[1])
                batch = batch.filter(pc.and_(*within))
            values = [
                (batch[name].cast(pa.int64()) if name == "time" else batch[name]).to_pylist()
                for name in columns
            ]
            yield from itertools.starmap(ArchivedTick, zip(*values, strict=True))

    def minutes(self) -> dict[int, ArchivedMinute]:
        import pyarrow as pa

        table = self.parquet.read()
        times = table["time"].cast(pa.int64()).to_pylist()
        columns = [table[name].to_pylist() for name in (*PRICES, "basis", "source")]
        return dict(zip(times, map(ArchivedMinute._make, zip(*columns, strict=True)), strict=True))


def symbol_and_day(file: ManifestFile, day: date) -> str:
    return f"{file.symbol} of {day}"
