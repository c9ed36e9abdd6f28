"""Our own recordings: a tick as JSON on each line, of any number of symbols."""

from collections.abc import Iterable, Iterator

import msgspec

from core.plain_json import spelled_out
from market.prices.records import Tick

from .format import FileBatch, FilePosition, Format, Subject, read_lines

SAMPLE = '{"symbol":"EURUSD","bid":1.0841,"ask":1.08424,"time_ms":1795262400250}'
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Tick)


def encode(ticks: list[Tick]) -> bytes:
    return spelled_out(_encoder.encode_lines(ticks))


def parse(text: str) -> list[Tick]:
    return _decoder.decode_lines(text)


def read(blocks: Iterable[bytes], subject: Subject, start: FilePosition) -> Iterator[FileBatch]:
    for batch in read_lines(blocks, parse, start):
        of_symbol = [tick.symbol == subject.symbol for tick in batch.ticks]
        if all(of_symbol):
            yield batch
        else:
            kept = [pair for pair, own in zip(zip(*batch[:2], strict=True), of_symbol, strict=True) if own]
            yield batch._replace(ticks=[tick for tick, _ in kept], lines=[line for _, line in kept])


def matches(head: bytes, path: str) -> bool:
    return head.lstrip().startswith(b"{") and b'"time_ms"' in head


FORMAT = Format("recording", SAMPLE, matches, read)
