"""The archive's own files: a day of one symbol as Parquet. pyarrow is an extra."""

from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import repeat

import msgspec

from market.prices.records import Tick

from .format import BadFile, FileBatch, FilePosition, Format, Subject

SAMPLE = "the archive's days of ticks (PAR1…), with the columns time, bid, ask and volume"
MAGIC = b"PAR1"
METADATA = b"tickwire"
ROWS = 50_000


class FileNotes(msgspec.Struct):
    symbol: str = ""


def matches(head: bytes, path: str) -> bool:
    return head.startswith(MAGIC)


def read(blocks: Iterable[bytes], subject: Subject, start: FilePosition) -> Iterator[FileBatch]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise BadFile(
            f"{subject.path} is Parquet, and pyarrow is missing, which reads it: install it "
            "(the extra `archive`)."
        ) from None
    try:
        file = pq.ParquetFile(BytesIO(b"".join(blocks)))
        _check(file.schema_arrow.names, file.metadata.metadata or {}, subject)
        first = 1
        for batch in file.iter_batches(ROWS, columns=["time", "bid", "ask", "volume"]):
            times = batch["time"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()).to_pylist()
            values = [batch[name].to_pylist() for name in ("bid", "ask")]
            ticks = list(map(Tick, repeat(subject.symbol), *values, times, batch["volume"].to_pylist()))
            yield FileBatch(ticks, range(first, first + len(ticks)))
            first += len(ticks)
    except (pa.ArrowException, OSError) as error:
        raise BadFile(f"{subject.path} is damaged: {error}. Download it again.") from None


def _check(columns: list[str], metadata: dict[bytes, bytes], subject: Subject) -> None:
    if missing := sorted({"time", "bid", "ask", "volume"} - set(columns)):
        raise BadFile(
            f"{subject.path} lacks the columns {', '.join(missing)}: candles are made of ticks here, so take "
            "the file under ticks/."
        )
    about = msgspec.json.decode(metadata.get(METADATA, b"{}"), type=FileNotes)
    if about.symbol not in ("", subject.symbol):
        raise BadFile(f"{subject.path} holds ticks of {about.symbol}, not of {subject.symbol}.")


PARQUET = Format("parquet", SAMPLE, matches, read)
