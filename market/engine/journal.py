"""How the journal is kept between processes: entries of a Redis Stream, a batch each, numbered without holes,
so that a reader sees at once that it missed something."""

from __future__ import annotations

import msgspec

from market.prices.records import AnyRecord

STREAM, HEAD = "tickwire:bus", "tickwire:bus:head"

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[AnyRecord]).decode

# Only the writer that claimed the head may append, and each number once: where an answer was lost, the
# question is asked again.
APPEND = """
local head = redis.call('HMGET', KEYS[2], 'writer', 'epoch', 'n')
if not head[1] then return 'empty' end
if head[1] ~= ARGV[1] then return 'deposed' end
if head[2] ~= ARGV[2] or tonumber(head[3]) < ARGV[3] - 1 then return 'behind' end
if tonumber(head[3]) >= tonumber(ARGV[3]) then return 'known' end
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[5], ARGV[3] .. '-0', 'e', ARGV[2], 'd', ARGV[4])
redis.call('HSET', KEYS[2], 'n', ARGV[3])
return 'ok'
"""
CLAIM = """
local writer = redis.call('HGET', KEYS[2], 'writer')
if ARGV[5] == 'own' and writer and writer ~= ARGV[1] then return 'deposed' end
redis.call('HSET', KEYS[2], 'writer', ARGV[1])
if ARGV[4] == 'anew' then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[2], 'epoch', ARGV[2], 'n', ARGV[3])
end
return redis.call('HMGET', KEYS[2], 'epoch', 'n')
"""


def number_of(entry_id: bytes) -> int:
    return int(entry_id.partition(b"-")[0])
