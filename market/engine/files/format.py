"""The formats of files of ticks: our own recordings; comma-separated quotes, HistData's quotes and bars,
Binance's trades and bars; Dukascopy's hours of ticks, as JSON or as LZMA-packed records whose hour stands in
the path. The unit of Dukascopy's prices depends on the instrument."""

import lzma
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate, compress, repeat
from struct import Struct
from typing import NamedTuple

import msgspec

from core.plain_json import spelled_out
from core.times import MINUTE_MS, epoch_ms, epoch_ms_before, read_iso
from market.prices.records import Tick


class BadFile(Exception):
    """A sentence for people: what is wrong with a file, and the way out."""


class Subject(NamedTuple):
    """What a file does not contain about itself."""

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
    """One line of it, as an example for users."""
    matches: Callable[[bytes, str], bool]
    """Whether a file that begins with these bytes, and has this path, is one."""
    read: Read
    basis: str = ""
    """Of its candles; empty if bid and ask make them."""


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


# What is offered is no volume, so the sizes are not used.
QUOTES_SAMPLE = "timestamp,bid,ask (a header; then lines such as 2026-11-21T12:00:00.250Z,1.08410,1.08424)"
HEADER = re.compile(r"\ufeff?\s*timestamp\s*,\s*bid\s*,\s*ask\s*(,\s*bid_size\s*,\s*ask_size\s*)?", re.I)


def parse_quotes(text: str, symbol: str) -> list[Tick]:
    stamps, bids, asks, *sizes = columns(text)
    if len(sizes) not in (0, 2):
        raise ValueError("three columns, or five")
    times = read_stamps(stamps) if "".join(stamps).isdecimal() else [read_iso_ms(stamp) for stamp in stamps]
    return list(map(Tick, repeat(symbol), map(float, bids), map(float, asks), times))


def is_header(line: str) -> bool:
    return HEADER.fullmatch(line) is not None


def are_quotes(head: bytes, path: str) -> bool:
    return is_header(head.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r"))


QUOTES = Format("quotes", QUOTES_SAMPLE, are_quotes, by_line(parse_quotes, is_header))

# HistData.com's ASCII ticks: time, bid, ask, volume (always 0).
HISTDATA_SAMPLE = "20120201 000003660,1.306600,1.306770,0"

# Its times are Eastern without daylight saving, all year round.
BEHIND_UTC_MS = 5 * 3_600_000
STAMP_LENGTH, MINUTE_LENGTH = len("20120201 000003660"), len("20120201 0000")
KNOWN_MINUTES = 10_000


class EasternMinutes(dict[str, int]):
    """A minute's text is made a time once for all its ticks."""

    def __missing__(self, text: str) -> int:
        if len(self) >= KNOWN_MINUTES:
            self.clear()
        self[text] = made = read_iso_ms(text) + BEHIND_UTC_MS
        return made


eastern_minutes = EasternMinutes()


def parse_histdata(text: str, symbol: str) -> list[Tick]:
    stamps, bids, asks, _ = columns(text)
    within = [stamp[MINUTE_LENGTH:] for stamp in stamps]
    if set(map(len, stamps)) != {STAMP_LENGTH} or not "".join(within).isdecimal():
        raise ValueError("no such time")
    within_ms = [int(digits) for digits in within]
    if max(within_ms) >= 60_000:
        raise ValueError("no such second")
    times = [eastern_minutes[stamp[:MINUTE_LENGTH]] + ms for stamp, ms in zip(stamps, within_ms, strict=True)]
    return list(map(Tick, repeat(symbol), map(float, bids), map(float, asks), times))


def is_histdata(head: bytes, path: str) -> bool:
    return re.search(rb"(?m)^\d{8} \d{9},", head) is not None


HISTDATA = Format("histdata", HISTDATA_SAMPLE, is_histdata, by_line(parse_histdata))

# Binance's dumps of aggregated trades: id, price, size, first id, last id, time, buyer is maker, best match
# (futures lack the last).
AGGTRADES_SAMPLE = "12345,0.00100000,100.0,100,105,1672515782136,True,True"

# Where the buyer is the maker, the taker sold.
TAKER_SIDES = {"True": -1, "true": -1, "False": 1, "false": 1}


def parse_aggtrades(text: str, symbol: str) -> list[Tick]:
    ids, written, sizes, _, _, stamps, makers, *_ = columns(text)
    prices = [float(price) for price in written]
    sides = [TAKER_SIDES[maker] for maker in makers]
    times, volumes = read_stamps(stamps), map(float, sizes)
    return list(map(Tick, repeat(symbol), prices, prices, times, volumes, sides, prices, map(int, ids)))


def has_names(line: str) -> bool:
    return not line[:1].isdigit()


def are_aggtrades(head: bytes, path: str) -> bool:
    row = rb"(?mi)^\d+,[\d.]+,[\d.]+,\d+,\d+,\d{13,16},(true|false)(,(true|false))?\r?$"
    return re.search(row, head) is not None


AGGTRADES = Format(
    "aggtrades",
    AGGTRADES_SAMPLE,
    are_aggtrades,
    by_line(parse_aggtrades, has_names),
    basis="trades",
)


# Lines that are minutes: HistData's M1 and Binance's klines.
# They tell neither how the price went within the minute nor what the ask was.
BASIS = "import"


class Bar(Tick, frozen=True, gc=False, kw_only=True):
    """To the rules for ticks its low is a bid and its high an ask."""

    open: float
    close: float


def bars_of(symbol: str, times: Sequence[int], *values: Sequence[str]) -> list[Tick]:
    bars = list[Tick]()
    for time_ms, *texts in zip(times, *values, strict=True):
        first, high, low, last, volume = map(float, texts)
        if time_ms % MINUTE_MS or not low <= min(first, last) <= max(first, last) <= high:
            raise ValueError("no minute, or prices outside its extremes")
        bars.append(Bar(symbol, low, high, time_ms, volume, open=first, close=last))
    return bars


# Eastern time, open, high, low, close, volume (always 0), of bids.
M1_SAMPLE = "20120201 000100;1.306570;1.306570;1.306470;1.306560;0"


def parse_m1(text: str, symbol: str) -> list[Tick]:
    stamps, *values = columns(text, ";")
    if {stamp[MINUTE_LENGTH:] for stamp in stamps} != {"00"} or len(values) != 5:
        raise ValueError("no such minute")
    return bars_of(symbol, [eastern_minutes[stamp[:MINUTE_LENGTH]] for stamp in stamps], *values)


def are_m1(head: bytes, path: str) -> bool:
    return re.search(rb"(?m)^\d{8} \d{6};", head) is not None


M1 = Format("histdata-m1", M1_SAMPLE, are_m1, by_line(parse_m1), BASIS)

# Open time, open, high, low, close, volume, close time, and five columns that are not used.
KLINES_SAMPLE = "1672515780000,0.0010,0.0025,0.0009,0.0020,1000,1672515839999,2.5,100,500,1.2,0"
KLINES_COLUMNS = 12


def parse_klines(text: str, symbol: str) -> list[Tick]:
    stamps, *values = columns(text)
    if len(values) != KLINES_COLUMNS - 1:
        raise ValueError("as many columns as klines have")
    times, ends = read_stamps(stamps), read_stamps(values[5])
    if any(end_ms - time_ms != MINUTE_MS - 1 for time_ms, end_ms in zip(times, ends, strict=True)):
        raise ValueError("bars of another length")
    return bars_of(symbol, times, *values[:5])


def are_klines(head: bytes, path: str) -> bool:
    return re.search(rb"(?m)^\d{13,16}(,[\d.]+){5},\d{13,16},", head) is not None


KLINES = Format("klines", KLINES_SAMPLE, are_klines, by_line(parse_klines, has_names), BASIS)


# The unit of the prices in Dukascopy's .bi5 files, by the name of the instrument's folder there. From its
# own lists of 2025 and 2026. All currencies, metals and coins are named, and those others whose unit is not
# 0.001.
UNITS = {
    0.1: (
        "2502JPJPY 2503JPJPY 2914JPJPY 3382JPJPY 3436JPJPY 4004JPJPY 4005JPJPY 4063JPJPY 4452JPJPY "
        "4502JPJPY 4503JPJPY 4507JPJPY 4523JPJPY 4543JPJPY 4689JPJPY 4911JPJPY 5108JPJPY 5301JPJPY "
        "5401JPJPY 6098JPJPY 6301JPJPY 6367JPJPY 6501JPJPY 6502JPJPY 6503JPJPY 6506JPJPY 6702JPJPY "
        "6752JPJPY 6758JPJPY 6762JPJPY 6902JPJPY 6954JPJPY 6971JPJPY 7201JPJPY 7203JPJPY 7261JPJPY "
        "7267JPJPY 7269JPJPY 7270JPJPY 7751JPJPY 7974JPJPY 8031JPJPY 8035JPJPY 8306JPJPY 8316JPJPY "
        "8411JPJPY 8766JPJPY 8801JPJPY 8802JPJPY 9020JPJPY 9432JPJPY 9433JPJPY 9501JPJPY 9983JPJPY "
        "9984JPJPY BCHCHF BCHEUR BCHGBP BCHUSD BTCCHF BTCEUR BTCGBP BTCUSD CSH2GBGBX ETHCHF ETHEUR "
        "ETHGBP ETHUSD LTCCHF LTCEUR LTCGBP LTCUSD XAUCZK XAUHUF XAUJPY XAUMXN XAUTHB XAUTRY XAUZAR "
        "YFIUSD"
    ),
    0.01: "CMPUSD SOAIDXZAR VOLIDXUSD",
    0.001: (
        "ADAUSD AEDHUF AEDJPY AEDTHB AUDHUF AUDJPY AUDTHB AVEUSD CADHUF CADJPY CADTHB CHFHUF CHFJPY "
        "CHFTHB CNHHUF CNHJPY CNHTHB DKKHUF DKKTHB DSHUSD ENJUSD EURHUF EURJPY EURTHB GBPHUF GBPJPY "
        "GBPTHB GITEUR HKDHUF HKDTHB ILSHUF ILSJPY ILSTHB LNKUSD MATUSD NOKHUF NOKTHB NZDHKD NZDHUF "
        "NZDJPY NZDTHB PLNHUF PLNJPY QMXMXN RONHUF RONJPY RONTHB SARHUF SARJPY SARTHB SEKHUF SEKTHB "
        "SGDHUF SGDJPY SGDTHB TRYHUF TRYJPY UNIUSD USCUSD USDHUF USDJPY XAGAED XAGAUD XAGCAD XAGCHF "
        "XAGCNH XAGCZK XAGDKK XAGEUR XAGGBP XAGHKD XAGHUF XAGILS XAGJPY XAGMXN XAGNOK XAGNZD XAGPLN "
        "XAGRON XAGSAR XAGSEK XAGSGD XAGTHB XAGTRY XAGUSD XAGZAR XAUAED XAUAUD XAUCAD XAUCHF XAUCNH "
        "XAUDKK XAUEUR XAUGBP XAUHKD XAUILS XAUNOK XAUNZD XAUPLN XAURON XAUSAR XAUSEK XAUSGD XAUUSD "
        "ZARHUF ZARJPY ZARTHB"
    ),
    0.0001: (
        "AEDCZK AUDCZK CADCZK CHFCZK CNHCZK COPPERCMDUSD CZKHUF CZKJPY DKKCZK EOSUSD EURCZK GASCMDUSD "
        "GBPCZK HKDCZK IE0005023803FNEUR IE00B40G6S53FNGBP IE00BHRWWY54FNUSD ILSCZK MXNHUF NOKCZK "
        "NZDCZK PLNCZK RONCZK SARCZK SEKCZK SGDCZK USDCZK USDTHB XLMUSD ZARCZK"
    ),
    0.00001: (
        "AEDCNH AEDHKD AEDMXN AEDRON AEDSAR AEDTRY AEDZAR AUDAED AUDCAD AUDCHF AUDCNH AUDDKK AUDHKD "
        "AUDILS AUDMXN AUDNOK AUDNZD AUDPLN AUDRON AUDSAR AUDSEK AUDSGD AUDTRY AUDUSD AUDZAR BATUSD "
        "CADAED CADCHF CADCNH CADDKK CADHKD CADILS CADMXN CADNOK CADPLN CADRON CADSAR CADSEK CADSGD "
        "CADTRY CADZAR CHFAED CHFCNH CHFDKK CHFHKD CHFILS CHFMXN CHFNOK CHFPLN CHFRON CHFSAR CHFSEK "
        "CHFSGD CHFTRY CHFZAR CNHHKD CNHMXN CNHTRY CNHZAR DKKAED DKKCNH DKKHKD DKKILS DKKJPY DKKMXN "
        "DKKRON DKKSAR DKKTRY DKKZAR EUCEUR EURAED EURAUD EURCAD EURCHF EURCNH EURDKK EURGBP EURHKD "
        "EURILS EURMXN EURNOK EURNZD EURPLN EURRON EURSAR EURSEK EURSGD EURTRY EURUSD EURZAR GBPAED "
        "GBPAUD GBPCAD GBPCHF GBPCNH GBPDKK GBPHKD GBPILS GBPMXN GBPNOK GBPNZD GBPPLN GBPRON GBPSAR "
        "GBPSEK GBPSGD GBPTRY GBPUSD GBPZAR HKDJPY HKDMXN HKDTRY HKDZAR ILSAED ILSCNH ILSHKD ILSMXN "
        "ILSRON ILSSAR ILSTRY ILSZAR JPYHUF MXNJPY MXNTRY NOKAED NOKCNH NOKDKK NOKHKD NOKILS NOKJPY "
        "NOKMXN NOKRON NOKSAR NOKSEK NOKTRY NOKZAR NZDAED NZDCAD NZDCHF NZDCNH NZDDKK NZDILS NZDMXN "
        "NZDNOK NZDPLN NZDRON NZDSAR NZDSEK NZDSGD NZDTRY NZDUSD NZDZAR PLNAED PLNCNH PLNDKK PLNHKD "
        "PLNILS PLNMXN PLNNOK PLNRON PLNSAR PLNSEK PLNTHB PLNTRY PLNZAR RONCNH RONHKD RONMXN RONTRY "
        "RONZAR SARCNH SARHKD SARMXN SARRON SARTRY SARZAR SEKAED SEKCNH SEKDKK SEKHKD SEKILS SEKJPY "
        "SEKMXN SEKRON SEKSAR SEKTRY SEKZAR SGDAED SGDCNH SGDDKK SGDHKD SGDILS SGDMXN SGDNOK SGDPLN "
        "SGDRON SGDSAR SGDSEK SGDTRY SGDZAR THBHUF THBJPY TRXUSD TRYTHB USDCAD USDCHF USDCNH USDDKK "
        "USDHKD USDILS USDMXN USDNOK USDPLN USDRON USDSEK USDSGD USDTRY USDZAR XAUXAG XLMCHF XLMEUR "
        "XLMGBP ZARMXN ZARTRY"
    ),
    0.000001: "CZKTHB CZKTRY MXNCZK MXNTHB",
}
POINTS = {name: point for point, names in UNITS.items() for name in names.split()}


def as_one_hour(parse: Callable[[bytes, Subject], list[Tick]], fault: str) -> Read:
    """How to read a file that makes sense only as a whole; `fault` follows "FILE is" if it makes none."""

    def read(blocks: Iterable[bytes], subject: Subject, start: FilePosition) -> Iterator[FileBatch]:
        try:
            ticks = parse(b"".join(blocks), subject)
        except (lzma.LZMAError, *NO_TICK) as error:
            raise BadFile(f"{subject.path} is {fault}: {error}. Download it again.") from None
        yield FileBatch(ticks, range(1, len(ticks) + 1))

    return read


JSON_SAMPLE = '{"timestamp":1783944000000,"multiplier":1.0E-5,"ask":1.14277,"bid":1.14273,"times":[93, …], …}'


class Hour(msgspec.Struct):
    timestamp: int
    multiplier: float
    times: list[int]
    asks: list[int]
    bids: list[int]
    # An hour without ticks need not name prices.
    ask: float = 0.0
    bid: float = 0.0


def parse_json(body: bytes, subject: Subject) -> list[Tick]:
    hour = msgspec.json.decode(body, type=Hour)
    if not len(hour.times) == len(hour.asks) == len(hour.bids) or not 0 < hour.multiplier <= 1:
        raise ValueError("columns of different lengths")
    # Divided rather than multiplied: 114277 / 100000 is 1.14277, 114277 * 0.00001 is not.
    units = round(1 / hour.multiplier)
    times = _sums(hour.timestamp, hour.times)
    bids, asks = (
        [price / units for price in _sums(round(first * units), changes)]
        for first, changes in ((hour.bid, hour.bids), (hour.ask, hour.asks))
    )
    return list(map(Tick, repeat(subject.symbol), bids, asks, times))


def _sums(first: int, changes: list[int]) -> list[int]:
    return list(accumulate(changes, initial=first))[1:]


def is_json_hour(head: bytes, path: str) -> bool:
    return head.lstrip().startswith(b"{") and b'"multiplier"' in head and b'"timestamp"' in head


DUKASCOPY = Format(
    "dukascopy", JSON_SAMPLE, is_json_hour, as_one_hour(parse_json, "no whole hour of Dukascopy's")
)

BI5_SAMPLE = "…/EURUSD/2024/00/15/13h_ticks.bi5 (months from 00)"

# Milliseconds within the hour, ask, bid, ask volume, bid volume.
RECORD = Struct(">IIIff")
PATH = re.compile(r"(?:([^/\\]+)[/\\])?(\d{4})[/\\](\d\d)[/\\](\d\d)[/\\](\d\d)h_ticks\.bi5$")


def usual_point(path: str, symbol: str, digits: int) -> float:
    """Dukascopy's, by its own name of the instrument, which is that of the folder, or else by ours."""
    match = PATH.search(path)
    folder = match[1] or "" if match else ""
    named = [POINTS[name] for name in (folder.upper(), symbol) if name in POINTS]
    return named[0] if named else 0.00001 if digits > 3 else 0.001


def hour_ms(path: str) -> int:
    """2024/00/15/13h_ticks.bi5 is 13:00 of 15 January: months are counted from 0."""
    match = PATH.search(path)
    try:
        year, month, day, hour = map(int, match.groups()[1:] if match else ())
        return epoch_ms(datetime(year, month + 1, day, hour, tzinfo=UTC))
    except ValueError:
        raise BadFile(
            f"{path}: the hour of a .bi5 file stands in its path. Keep it as {BI5_SAMPLE}."
        ) from None


def parse_bi5(packed: bytes, subject: Subject) -> list[Tick]:
    hour, units = hour_ms(subject.path), round(1 / subject.point)
    records = lzma.decompress(packed) if packed else b""
    if len(records) % RECORD.size:
        raise ValueError("the last record is cut short")
    return [
        Tick(subject.symbol, bid / units, ask / units, hour + within_ms)
        for within_ms, ask, bid, _, _ in RECORD.iter_unpack(records)
    ]


BI5 = Format("bi5", BI5_SAMPLE, lambda head, path: path.endswith(".bi5"), as_one_hour(parse_bi5, "damaged"))
