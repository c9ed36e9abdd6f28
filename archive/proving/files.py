"""Files of a day, read back."""

from __future__ import annotations

import hashlib
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

    def ticks(self) -> Iterator[ArchivedTick]:
        import pyarrow as pa

        columns = ("seq", "epoch", "time", "bid", "ask", "volume", "source")
        for batch in self.parquet.iter_batches(BATCH, columns=list(columns)):
            values = [
                (batch[name].cast(pa.int64()) if name == "time" else batch[name]).to_pylist()
                for name in columns
            ]
            yield from map(ArchivedTick._make, zip(*values, strict=True))

    def minutes(self) -> dict[int, ArchivedMinute]:
        import pyarrow as pa

        table = self.parquet.read()
        times = table["time"].cast(pa.int64()).to_pylist()
        columns = [table[name].to_pylist() for name in (*PRICES, "basis", "source")]
        return dict(zip(times, map(ArchivedMinute._make, zip(*columns, strict=True)), strict=True))


def symbol_and_day(file: ManifestFile, day: date) -> str:
    return f"{file.symbol} of {day}"
