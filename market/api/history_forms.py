"""The forms of a page of candles: JSON, CSV, and Arrow's stream where pyarrow is installed. Each is made part
by part, out of what the database writes."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

from core.contract.answers import JSON
from core.contract.errors import NotAcceptable
from core.contract.negotiation import chosen_type
from core.plain_json import encode
from market.prices.history import CSV_FIELDS
from market.store.candle_texts import AS_CSV, AS_JSON, CandlesText, TextForm

CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
NO_ARROW = (
    "This service cannot make Arrow: pyarrow is not installed here. Ask for application/json or text/csv, or "
    "have its operator install it (the extra `archive`)."
)

BASIS_FIELDS = "basis,partial"

# More would take twice as long for a twentieth less.
GZIP_LEVEL = 4
GZIP = 16 + zlib.MAX_WBITS

# The end of Arrow's stream: a message of no length.
ARROW_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class About(NamedTuple):
    """What a page says besides its candles."""

    symbol: str
    timeframe: str
    next: str | None
    has_basis: bool = False

    @property
    def fields(self) -> str:
        return f"{CSV_FIELDS},{BASIS_FIELDS}" if self.has_basis else CSV_FIELDS


class Form(NamedTuple):
    media_type: str
    text: TextForm
    make: Callable[[About, Iterable[CandlesText]], Iterator[bytes]]


def json_parts(about: About, candles: Iterable[CandlesText]) -> Iterator[bytes]:
    lead, count = f'{{"symbol":"{about.symbol}","timeframe":"{about.timeframe}","ohlcv":[', 0
    for part in candles:
        count += part.candles
        if part.is_last:
            yield b"%b%b%b" % (lead.encode(), part.text.encode(), json_end(about, count))
            return
        yield (lead + part.text).encode()
        lead = ","
    yield ("" if count else lead).encode() + json_end(about, count)


def json_end(about: About, count: int) -> bytes:
    return b'],"count":%d,"next":%b}' % (count, encode(about.next))


def csv_parts(about: About, candles: Iterable[CandlesText]) -> Iterator[bytes]:
    yield f"{about.fields}\n".encode()
    for part in candles:
        yield part.text.encode()


def arrow_parts(about: About, candles: Iterable[CandlesText]) -> Iterator[bytes]:
    # Here and not above: it is an extra, and takes forty megabytes of those who never ask for it.
    import pyarrow
    import pyarrow.csv

    names = about.fields.split(",")
    types = {name: pyarrow.float64() for name in names} | {"time": pyarrow.timestamp("ms", "UTC")}
    if about.has_basis:
        types |= {"basis": pyarrow.string(), "partial": pyarrow.bool_()}
    metadata = {"symbol": about.symbol, "timeframe": about.timeframe}
    schema = pyarrow.schema(types.items(), metadata=metadata)
    reading: dict[str, Any] = {
        "read_options": pyarrow.csv.ReadOptions(use_threads=False, column_names=names),
        "convert_options": pyarrow.csv.ConvertOptions(column_types=types),
    }
    yield schema.serialize().to_pybytes()
    for part in candles:
        table = pyarrow.csv.read_csv(pyarrow.BufferReader(part.text.encode()), **reading)
        yield b"".join(batch.serialize().to_pybytes() for batch in table.to_batches())
    yield ARROW_END


FORMS = {
    JSON: Form(JSON, AS_JSON, json_parts),
    CSV: Form("text/csv; charset=utf-8", AS_CSV, csv_parts),
    ARROW: Form(ARROW, AS_CSV, arrow_parts),
}


def has_arrow() -> bool:
    return find_spec("pyarrow") is not None


def asked_form(scope: dict[str, Any]) -> Form:
    name = chosen_type(scope, tuple(FORMS))
    if name == ARROW and not has_arrow():
        try:
            name = chosen_type(scope, (JSON, CSV))
        except NotAcceptable as refusal:
            raise NotAcceptable(NO_ARROW, field="Accept", allowed=refusal.allowed) from None
    return FORMS[name]


def gzipped(parts: Iterable[bytes]) -> Iterator[bytes]:
    compressing = zlib.compressobj(GZIP_LEVEL, wbits=GZIP)
    for part in parts:
        yield compressing.compress(part)
    yield compressing.flush()
