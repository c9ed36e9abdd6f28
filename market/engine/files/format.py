"""What a format of files of ticks says of itself, how lines, columns and times are read, and the format of
our own recordings."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from typing import NamedTuple

import msgspec

from core.plain_json import spelled_out
from core.times import epoch_ms_before, read_iso
from market.prices.records import Tick


class BadFile(Exception):
    """A sentence for people: what is wrong with a file, and the way out."""


class Subject(NamedTuple):
    """What a file does not say of itself."""

    symbol: str
    point: float = 0.00001
    """The unit of whole-number prices."""
    path: str = ""


class FilePosition(NamedTuple):
    """Where in a file a line begins: bytes before it, and its number."""

    offset: int = 0
    line: int = 1


class FileBatch(NamedTuple):
    ticks: list[Tick]
    lines: Sequence[int]
    """The line of each tick, counted from 1."""
    malformed: Sequence[int] = ()
    """Lines that make no tick."""
    position: FilePosition = FilePosition()


Read = Callable[[Iterable[bytes], Subject, FilePosition], Iterator[FileBatch]]
"""From blocks of bytes, each of whole lines; the position is that of the first."""


class Format(NamedTuple):
    name: str
    sample: str
    """One line of it, for people."""
    matches: Callable[[bytes, str], bool]
    """Whether a file that begins with these bytes, and has this path, is one."""
    read: Read
    basis: str = ""
    """Of its candles; empty where bid and ask make them."""


Parse = Callable[[str, str], list[Tick]]
"""One tick of the symbol for each line of the text, or one of `NO_TICK` if any line makes none."""

# msgspec's errors are ValueErrors, but for lines nested too deeply.
NO_TICK = (ValueError, KeyError, OverflowError, RecursionError)


def columns(text: str, separator: str = ",") -> Iterator[tuple[str, ...]]:
    """The columns of lines, which must all have the same number of them."""
    # Python takes 1_0 for 10.
    if "_" in text:
        raise ValueError("an underscore")
    return zip(*[line.split(separator) for line in text.split("\n")], strict=True)


def by_line(parse: Parse, is_header: Callable[[str], bool] = lambda line: False) -> Read:
    """How a format with a tick on each line is read."""

    def read(blocks: Iterable[bytes], subject: Subject, start: FilePosition) -> Iterator[FileBatch]:
        offset, number = start
        for block in blocks:
            text = block.decode("utf-8-sig" if offset == 0 else "utf-8", "replace")
            text = text.replace("\r", "").removesuffix("\n")
            position, first = FilePosition(offset, number), number
            offset, number = offset + len(block), number + text.count("\n") + 1
            if first == 1 and is_header(text.partition("\n")[0]):
                text, first = text.partition("\n")[2], 2
            if text:
                yield _batch(text, subject.symbol, parse, first)._replace(position=position)

    return read


def _batch(text: str, symbol: str, parse: Parse, first: int) -> FileBatch:
    try:
        ticks = parse(text, symbol)
    except NO_TICK:
        ticks = []
    # JSON skips blank lines, and then the numbers would not fit.
    if len(ticks) == text.count("\n") + 1:
        return FileBatch(ticks, range(first, first + len(ticks)))
    return _line_by_line(text, symbol, parse, first)


def _line_by_line(text: str, symbol: str, parse: Parse, first: int) -> FileBatch:
    ticks, lines, malformed = list[Tick](), list[int](), list[int]()
    for number, line in enumerate(text.split("\n"), first):
        if not line.strip():
            continue
        try:
            ticks += parse(line, symbol)
            lines.append(number)
        except NO_TICK:
            malformed.append(number)
    return FileBatch(ticks, lines, malformed)


# Milliseconds of 1973 and of the year 5138: what is below are seconds, what is above microseconds.
LEAST, MOST = 10**11, 10**14


def read_iso_ms(text: str) -> int:
    """Milliseconds of an ISO 8601 time; without an offset it is UTC."""
    return epoch_ms_before(read_iso(text))


def read_stamps(stamps: Sequence[str]) -> list[int]:
    """Whole numbers: milliseconds, or by their magnitude microseconds."""
    values = [int(stamp) for stamp in stamps]
    if min(values) < LEAST:
        raise ValueError("neither milliseconds nor microseconds")
    if max(values) < MOST:
        return values
    return [value // 1000 if value >= MOST else value for value in values]


# Our own recordings: a tick as JSON on each line, of any number of symbols.
SAMPLE = '{"symbol":"EURUSD","bid":1.0841,"ask":1.08424,"time_ms":1795262400250}'
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Tick)
_read_all = by_line(lambda text, symbol: _decoder.decode_lines(text))


def encode(ticks: list[Tick]) -> bytes:
    return spelled_out(_encoder.encode_lines(ticks))


def read(blocks: Iterable[bytes], subject: Subject, start: FilePosition) -> Iterator[FileBatch]:
    for batch in _read_all(blocks, subject, start):
        of_symbol = [tick.symbol == subject.symbol for tick in batch.ticks]
        if all(of_symbol):
            yield batch
        else:
            ticks, lines = compress(batch.ticks, of_symbol), compress(batch.lines, of_symbol)
            yield batch._replace(ticks=list(ticks), lines=list(lines))


def matches(head: bytes, path: str) -> bool:
    return head.lstrip().startswith(b"{") and b'"time_ms"' in head


RECORDING = Format("recording", SAMPLE, matches, read)
