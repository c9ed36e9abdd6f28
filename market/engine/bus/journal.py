"""The journal: numbered batches of records in a Redis Stream or in files, and what was published recently.
The numbers have no holes, so a reader sees at once that it missed something."""

import uuid
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import msgspec

from market.prices.candles import TIMEFRAMES, key_of_candles
from market.prices.records import (
    AbsorptionFound,
    AnyRecord,
    ClosedCandle,
    SeriesBegan,
    TickAccepted,
    closed_by,
)

STREAM, HEAD, STATUS = "bus", "bus:head", "bus:status"
encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[AnyRecord]).decode

# Only the writer that claimed the head may append, each number once: it asks again if an answer was lost.
APPEND = """
local head = redis.call('HMGET', KEYS[2], 'writer', 'epoch', 'n')
if not head[1] then return 'empty' end
if head[1] ~= ARGV[1] then return 'deposed' end
if head[2] ~= ARGV[2] or tonumber(head[3]) < ARGV[3] - 1 then return 'behind' end
if tonumber(head[3]) >= tonumber(ARGV[3]) then return 'known' end
redis.call('XADD', KEYS[1], 'MINID', '~', ARGV[5], ARGV[3] .. '-0', 'e', ARGV[2], 'd', ARGV[4])
redis.call('HSET', KEYS[2], 'n', ARGV[3])
if ARGV[6] ~= '' then redis.call('SET', KEYS[3], ARGV[6]) end
return 'ok'
"""

# A full Redis refuses a script only its first write, and never one that deletes. So the successor of an
# engine that filled it can claim the stream, write what is in it, and make room.
CLAIM = """
local writer = redis.call('HGET', KEYS[2], 'writer')
if ARGV[5] == 'own' and writer and writer ~= ARGV[1] then return 'deposed' end
redis.call('HDEL', KEYS[2], 'writer')
redis.call('HSET', KEYS[2], 'writer', ARGV[1])
if ARGV[4] == 'restart' then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[2], 'epoch', ARGV[2], 'n', ARGV[3])
end
return redis.call('HMGET', KEYS[2], 'epoch', 'n')
"""


RecordListener = Callable[[list[AnyRecord]], None]
RecordKeeper = Callable[[str, list[AnyRecord], list[int]], None]
"""Gets records of one symbol that waited, and when each of them came."""


class JournalWriter(Protocol):
    """Whose journal it is."""

    @property
    def writer(self) -> str: ...

    def lose_lease(self) -> None:
        """Another writer has claimed the stream."""

    def flush_soon(self) -> None:
        """The numbering restarts: no reader can continue before that is in the database."""


def new_epoch() -> str:
    return uuid.uuid4().hex[:12]


def number_of(entry_id: bytes) -> int:
    return int(entry_id.partition(b"-")[0])


KEEP_MS, MAX_FRAMES = 120_000, 1_000
"""How long, and how many frames of a symbol, a stream can send again."""
StreamNumbers = dict[str, tuple[int, int]]
"""By symbol the last number of its prices, and of its order flow; by the key of candles the last of theirs,
and 0."""


class SentRecord(NamedTuple):
    at_ms: int
    record: TickAccepted | AbsorptionFound


class SentCandle(NamedTuple):
    at_ms: int
    candle: ClosedCandle


def _few() -> deque[SentRecord]:
    return deque(maxlen=MAX_FRAMES)


def _few_candles() -> deque[SentCandle]:
    return deque(maxlen=MAX_FRAMES)


class RecentRecords:
    """Of each symbol, and in the order of its numbers, what the streams were given."""

    def __init__(self) -> None:
        self.prices: defaultdict[str, deque[SentRecord]] = defaultdict(_few)
        self.flow: defaultdict[str, deque[SentRecord]] = defaultdict(_few)
        self.candles: defaultdict[str, deque[SentCandle]] = defaultdict(_few_candles)
        """By the key of candles."""
        self.numbers: StreamNumbers = {}
        self.ended: StreamNumbers = {}
        """Where a series of the other kind began: the last numbers of the one before."""

    def add(self, at_ms: int, records: Iterable[AnyRecord]) -> None:
        for record in records:
            symbol = record.symbol
            seq, flow_seq = self.numbers.get(symbol, (0, 0))
            if isinstance(record, TickAccepted):
                self.prices[symbol].append(SentRecord(at_ms, record))
                if record.flow_seq:
                    self.flow[symbol].append(SentRecord(at_ms, record))
                self.numbers[symbol] = record.seq, record.flow_seq or flow_seq
            elif isinstance(record, AbsorptionFound):
                self.flow[symbol].append(SentRecord(at_ms, record))
                self.numbers[symbol] = seq, record.flow_seq
            elif isinstance(record, SeriesBegan):
                # A reader learns where another series begins before it continues.
                self.prices.pop(symbol, None)
                self.flow.pop(symbol, None)
                self.ended[symbol] = seq, flow_seq
                for key in (key_of_candles(symbol, timeframe) for timeframe in TIMEFRAMES):
                    self.candles.pop(key, None)
                    self.ended[key] = self.numbers.get(key, (0, 0))
            for candle in closed_by(record):
                key = key_of_candles(symbol, candle.timeframe)
                self.candles[key].append(SentCandle(at_ms, candle))
                self.numbers[key] = candle.seq, 0


def falls_short(known: StreamNumbers, given: StreamNumbers) -> bool:
    """Whether numbers were given that are not known, and would be given again."""
    return any(
        seq > known.get(symbol, (0, 0))[0] or flow_seq > known.get(symbol, (0, 0))[1]
        for symbol, (seq, flow_seq) in given.items()
    )


SIZES = 8


class JournalEntry(msgspec.Struct, array_like=True, gc=False):
    number: int
    records: list[AnyRecord]
    at_ms: int = 0
    """When it was published."""


decode_entry = msgspec.msgpack.Decoder(JournalEntry).decode


def read_entries(data: bytes) -> tuple[list[JournalEntry], int]:
    """Those that are whole, and the bytes that they take."""
    entries: list[JournalEntry] = []
    start = 0
    while start + SIZES <= len(data):
        size = int.from_bytes(data[start : start + 4], "big")
        checksum = int.from_bytes(data[start + 4 : start + SIZES], "big")
        body = data[start + SIZES : start + SIZES + size]
        if len(body) < size or zlib.crc32(body) != checksum:
            break
        entries.append(decode_entry(body))
        start += SIZES + size
    return entries, start
