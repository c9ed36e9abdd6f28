"""Opens a file of ticks: plain, .gz, .zip with one member, Parquet, or standard input. Its start tells its
format."""

import gzip
import hashlib
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from io import BufferedReader, BytesIO
from itertools import repeat
from pathlib import Path
from typing import IO, Self

import msgspec

from market.prices.records import Tick

from .format import (
    AGGTRADES,
    BI5,
    DUKASCOPY,
    HISTDATA,
    KLINES,
    M1,
    QUOTES,
    RECORDING,
    BadFile,
    FileBatch,
    FilePosition,
    Format,
    Subject,
)

# The archive's own files: a day of one symbol as Parquet. pyarrow is an extra.
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


BLOCK = 1 << 16
START = FilePosition()

# An archive whose fields contradict each other fails in as many ways as it is read.
DAMAGES = (
    *(OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile),
    *(struct.error, ValueError, IndexError, OverflowError, NotImplementedError),
)
ENCRYPTED = 0x1


class TickFile:
    def __init__(self, path: str, format_name: str | None = None, *, block: int = BLOCK) -> None:
        self.is_stdin = path == "-"
        self.path = "standard input" if self.is_stdin else path
        self._block = block
        with ExitStack() as opened:
            try:
                raw = opened.enter_context(
                    open(0 if self.is_stdin else path, "rb", closefd=not self.is_stdin)
                )
                # Of the file as stored, packed or not; 0 if unknown.
                self.size = 0 if self.is_stdin else os.fstat(raw.fileno()).st_size
                self._raw, self._stream = raw, self._unpacked(raw)
                self._head = self._stream.read(block)
            except DAMAGES as error:
                raise self._unreadable(error) from None
            if not self._head and not self.path.endswith(".bi5"):
                raise BadFile(f"{self.path} is empty. Was the download complete?")
            self.format = FORMATS[format_name] if format_name else detect(self._head, self.path)
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def position(self) -> int:
        """Bytes of `size` that were read."""
        return self._raw.tell() if self.size else 0

    def batches(self, symbol: str, point: float, start: FilePosition = START) -> Iterator[FileBatch]:
        yield from self.format.read(self._blocks(start.offset), Subject(symbol, point, self.path), start)

    def _blocks(self, skip: int) -> Iterator[bytes]:
        """Whole lines, from the beginning of one."""
        rest = b""
        for chunk in self._chunks(skip):
            cut = chunk.rfind(b"\n") + 1
            if cut:
                yield rest + chunk[:cut]
                rest = chunk[cut:]
            else:
                rest += chunk
        if rest:
            yield rest

    def _chunks(self, skip: int) -> Iterator[bytes]:
        chunk, self._head = self._head, b""
        try:
            while chunk:
                if len(chunk) > skip:
                    yield chunk[skip:]
                skip = max(0, skip - len(chunk))
                chunk = self._stream.read(self._block)
        except DAMAGES as error:
            raise self._unreadable(error) from None

    def _unpacked(self, raw: BufferedReader) -> IO[bytes]:
        begins = raw.peek(4)[:4]
        if begins.startswith(b"\x1f\x8b"):
            return gzip.open(raw)  # type: ignore[return-value]
        if begins != b"PK\x03\x04":
            return raw
        if self.is_stdin:
            raise BadFile(
                "A .zip cannot be read from standard input: name the file, or unpack it with funzip."
            )
        members = zipfile.ZipFile(raw)
        if len(members.namelist()) != 1:
            raise BadFile(f"{self.path} holds {len(members.namelist())} files. Unpack it, and name one.")
        (member,) = members.infolist()
        if member.flag_bits & ENCRYPTED:
            raise BadFile(f"{self.path} is encrypted. Unpack it with its password, and name the file in it.")
        return members.open(member)

    def _unreadable(self, error: Exception) -> BadFile:
        why = getattr(error, "strerror", None) or str(error)
        return BadFile(
            f"{self.path} cannot be read: {why}. Check the path and its rights, or download it again."
        )


def digest(path: str) -> str:
    """Identifies the file when an import continues; standard input cannot be read again."""
    if path == "-":
        return ""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


FORMATS = {
    known.name: known
    for known in (BI5, PARQUET, QUOTES, HISTDATA, M1, AGGTRADES, KLINES, DUKASCOPY, RECORDING)
}


def detect(head: bytes, path: str) -> Format:
    for known in FORMATS.values():
        if known.matches(head, path):
            return known
    samples = "\n".join(f"  {known.name:<11} {known.sample}" for known in FORMATS.values())
    raise BadFile(
        f"{path} begins like none of the formats that are read. "
        f"Name one with --format, or convert it:\n{samples}"
    )
