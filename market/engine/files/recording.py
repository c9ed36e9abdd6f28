"""Our own recordings: a tick as JSON on each line, of any number of symbols."""

from collections.abc import Iterable, Iterator
from itertools import compress

import msgspec

from core.plain_json import spelled_out
from market.prices.records import Tick

from .format import FileBatch, FilePosition, Format, Subject, by_line

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
