-- The slots of all processes, decided in one step: what MemorySlots does for one, and who is still alive.
-- ARGV: the process that asks; which of its ended slots it knows about; what it asks. The last two packed.
-- Answers what was asked, which of its slots ended, and whether the process was known before it asked.
-- KEYS: how all names begin. The rest of them is made here: for one Redis, not for a cluster.
local ROOT = KEYS[1]
local BEATS, BURIED = ROOT .. 'beats', ROOT .. 'buried'
-- In microseconds. A process that was silent for LEASE is gone; one that was silent for TRUST judges no other.
local LEASE, TRUST, GRACE, DAY = 3000000, 1500000, 2000000, 86400000000
-- Redis serves no other client while this runs. Slots of a process that is gone are removed in pieces.
local PIECE = 200

local me, heard, asked = ARGV[1], cmsgpack.unpack(ARGV[2]), cmsgpack.unpack(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function whole(number) return string.format('%.0f', number) end
local was_known = redis.call('ZADD', BEATS, 'NX', whole(now), me) == 0

-- An account is here whatever slots are counted under: the keys of one, or our own pages.
local function of_account(account) return ROOT .. 'account:' .. account end
local function of_process(process) return ROOT .. 'process:' .. process end
local function ends_of(process) return ROOT .. 'ends:' .. process end
-- A slot is "process number opened_at path".
local function process_of(slot) return string.match(slot, '^%S+') end
local function path_of(slot) return string.match(slot, '%S+$') end

local function add(slot, account, order)
  redis.call('ZADD', of_account(account), whole(order), slot)
  redis.call('HSET', of_process(me), slot, account)
end

local function remove(slot, account)
  redis.call('ZREM', of_account(account), slot)
  redis.call('HDEL', of_process(process_of(slot)), slot)
end

local function finish(slot, account, code)
  local process = process_of(slot)
  remove(slot, account)
  redis.call('HSET', ends_of(process), slot, code)
  redis.call('PEXPIRE', ends_of(process), 3600000)
  if process ~= me then redis.call('PUBLISH', ends_of(process), code) end
end

-- Answers how many were taken from it, and how many it still has.
local function forget_some(process)
  local next, held = '0', {}
  -- What was removed before has left empty places at the beginning.
  repeat
    next, held = unpack(redis.call('HSCAN', of_process(process), next, 'COUNT', PIECE))
  until #held > 0 or next == '0'
  for index = 1, #held, 2 do remove(held[index], held[index + 1]) end
  return #held / 2, redis.call('HLEN', of_process(process))
end

local function oldest(held, path)
  for _, slot in ipairs(held) do
    if path_of(slot) == path then return slot end
  end
  return held[1]
end

local does = {}

-- {1, its place}, {0, how many there are}, or {2}: Redis has forgotten the process and what it holds already.
function does.claim(slot, account, limit, takeover)
  if not was_known then return {2} end
  local held = redis.call('ZRANGE', of_account(account), 0, -1)
  if #held >= limit then
    if not takeover or limit < 1 then return {0, #held} end
    finish(oldest(held, path_of(slot)), account, 'taken_over')
  end
  -- Later than the newest also where they share a turn, or the clock was set back.
  local newest = redis.call('ZRANGE', of_account(account), -1, -1, 'WITHSCORES')
  local order = math.max(now, (tonumber(newest[2]) or 0) + 1)
  add(slot, account, order)
  return {1, order}
end

function does.release(slot, account)
  remove(slot, account)
  return 0
end

function does.enforce(account, limit)
  for _, slot in ipairs(redis.call('ZRANGE', of_account(account), limit, -1)) do
    finish(slot, account, 'stream_limit_exceeded')
  end
  return 0
end

-- Some of the process' slots as it knows them. If it was taken for dead, others may have theirs by now.
function does.tell(slots)
  local is_late = redis.call('ZSCORE', BURIED, me)
  local has_ends, fields = redis.call('EXISTS', ends_of(me)) == 1, {}
  for _, sent in ipairs(slots) do
    local slot, account, limit, order = unpack(sent)
    if not (has_ends and redis.call('HEXISTS', ends_of(me), slot) == 1) then
      if is_late and redis.call('ZCARD', of_account(account)) >= limit
        and not redis.call('ZSCORE', of_account(account), slot) then
        finish(slot, account, 'stream_limit_exceeded')
        has_ends = true
      else
        redis.call('ZADD', of_account(account), whole(order), slot)
        fields[#fields + 1] = slot
        fields[#fields + 1] = account
      end
    end
  end
  -- The stack of Lua has room for some thousands.
  for first = 1, #fields, 2000 do
    redis.call('HSET', of_process(me), unpack(fields, first, math.min(first + 1999, #fields)))
  end
  return 0
end

-- What Redis takes for slots of the process, some at a time: {where to go on, {slot, account, …}}.
function does.known(from)
  local next, held = unpack(redis.call('HSCAN', of_process(me), from, 'COUNT', PIECE))
  return {next, held}
end

-- Those that the process does not have.
function does.drop(slots)
  for index = 1, #slots, 2 do remove(slots[index], slots[index + 1]) end
  return 0
end

-- All slots of the process have been sent.
function does.complete()
  redis.call('ZREM', BURIED, me)
  return 0
end

-- Some of the slots of processes that are gone. Answers how many such processes are left.
function does.bury()
  local taken = 0
  for _, process in ipairs(redis.call('ZRANGEBYSCORE', BEATS, '-inf', whole(now - LEASE))) do
    if taken >= PIECE then break end
    redis.call('ZADD', BURIED, whole(now), process)
    local some, left = forget_some(process)
    taken = taken + some
    if left == 0 then redis.call('ZREM', BEATS, process) end
  end
  return redis.call('ZCOUNT', BEATS, '-inf', whole(now - LEASE))
end

-- Answers how many slots the process has, or -1 if it was taken for dead and has to tell them; whether others
-- are gone; and how many each of the others has.
function does.beat()
  local age, more = was_known and now - redis.call('ZSCORE', BEATS, me), 0
  if age and (age < 0 or age > TRUST) then
    -- Redis stood still, was restored or its clock was set, or this process slept: all get time to beat.
    for _, process in ipairs(redis.call('ZRANGE', BEATS, 0, -1)) do
      redis.call('ZADD', BEATS, whole(now - LEASE + GRACE), process)
    end
  elseif age then
    more = does.bury()
    redis.call('ZREMRANGEBYSCORE', BURIED, '-inf', whole(now - DAY))
  end
  redis.call('ZADD', BEATS, whole(now), me)
  local others = {}
  for _, process in ipairs(redis.call('ZRANGE', BEATS, 0, -1)) do
    if process ~= me then others[#others + 1] = redis.call('HLEN', of_process(process)) end
  end
  if redis.call('ZSCORE', BURIED, me) then return {-1, more, others} end
  return {redis.call('HLEN', of_process(me)), more, others}
end

-- Answers how many slots it still has.
function does.leave()
  local _, left = forget_some(me)
  if left == 0 then
    redis.call('ZREM', BEATS, me)
    redis.call('DEL', ends_of(me))
  end
  return left
end

function does.of(account)
  return redis.call('ZRANGE', of_account(account), 0, -1)
end

function does.count()
  local open = 0
  for _, process in ipairs(redis.call('ZRANGE', BEATS, 0, -1)) do
    open = open + redis.call('HLEN', of_process(process))
  end
  return open
end

for _, slot in ipairs(heard) do redis.call('HDEL', ends_of(me), slot) end
local answers = {}
for index, question in ipairs(asked) do answers[index] = does[question[1]](unpack(question, 2)) end
local flat, ended = redis.call('HGETALL', ends_of(me)), {}
for index = 1, #flat, 2 do ended[#ended + 1] = {flat[index], flat[index + 1]} end
return cmsgpack.pack({answers, ended, was_known})
