"""Dukascopy's hours of ticks: JSON, in which each tick is what changed since the one before, and .bi5 files,
LZMA-packed records whose hour stands in the path. The unit of their prices depends on the instrument."""

import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import accumulate, repeat
from struct import Struct

import msgspec

from core.times import epoch_ms
from market.prices.records import Tick

from .format import NO_TICK, BadFile, FileBatch, FilePosition, Format, Read, Subject

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
    """How a file is read that makes sense only as a whole; `fault` says what it is where it makes none."""

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
