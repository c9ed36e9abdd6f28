-- The slots of all processes, decided in one step: what MemorySlots does for one, and who is still alive.
-- ARGV: the process that asks; which of its ended slots it has heard of; what it asks. The last two packed.
-- Answers what was asked, and which of its slots ended. Keys are made here: for one Redis, not for a cluster.
local ROOT = 'tickwire:streams:'
local BEATS, BURIED = ROOT .. 'beats', ROOT .. 'buried'
-- In microseconds. A process that was silent for LEASE is gone; one that was silent for TRUST judges nobody.
local LEASE, TRUST, GRACE, DAY = 3000000, 1500000, 2000000, 86400000000

local me, heard, asked = ARGV[1], cmsgpack.unpack(ARGV[2]), cmsgpack.unpack(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function of_account(account) return ROOT .. 'account:' .. account end
local function of_process(process) return ROOT .. 'process:' .. process end
local function ends_of(process) return ROOT .. 'ends:' .. process end
local function whole(number) return string.format('%.0f', number) end
-- A slot is "process number opened_at path".
local function process_of(slot) return string.match(slot, '^%S+') end
local function path_of(slot) return string.match(slot, '%S+$') end

local function add(slot, account, order)
  redis.call('ZADD', of_account(account), whole(order), slot)
  redis.call('HSET', of_process(me), slot, account)
  redis.call('ZADD', BEATS, 'NX', whole(now), me)
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

local function forget(process)
  local held = redis.call('HGETALL', of_process(process))
  for index = 1, #held, 2 do redis.call('ZREM', of_account(held[index + 1]), held[index]) end
  redis.call('DEL', of_process(process))
end

local function oldest(held, path)
  for _, slot in ipairs(held) do
    if path_of(slot) == path then return slot end
  end
  return held[1]
end

local does = {}

function does.claim(slot, account, limit, takeover)
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

-- The process' slots as it knows them, oldest first. If it was taken for dead, others may have theirs by now.
function does.tell(slots)
  local is_late = redis.call('ZSCORE', BURIED, me)
  forget(me)
  for _, told in ipairs(slots) do
    local slot, account, limit, order = unpack(told)
    if redis.call('HEXISTS', ends_of(me), slot) == 0 then
      if is_late and redis.call('ZCARD', of_account(account)) >= limit then
        finish(slot, account, 'stream_limit_exceeded')
      else
        add(slot, account, order)
      end
    end
  end
  redis.call('ZREM', BURIED, me)
  return 0
end

-- Answers how many slots the process has, or -1 if it has to tell them.
function does.beat()
  local seen = tonumber(redis.call('ZSCORE', BEATS, me) or '')
  local age = seen and now - seen
  if age and (age < 0 or age > TRUST) then
    -- Redis stood still, was restored or its clock was set, or this process slept: all get time to beat.
    for _, process in ipairs(redis.call('ZRANGE', BEATS, 0, -1)) do
      redis.call('ZADD', BEATS, whole(now - LEASE + GRACE), process)
    end
  elseif age then
    for _, process in ipairs(redis.call('ZRANGEBYSCORE', BEATS, '-inf', whole(now - LEASE))) do
      forget(process)
      redis.call('ZREM', BEATS, process)
      redis.call('ZADD', BURIED, whole(now), process)
    end
    redis.call('ZREMRANGEBYSCORE', BURIED, '-inf', whole(now - DAY))
  end
  redis.call('ZADD', BEATS, whole(now), me)
  if not seen or redis.call('ZSCORE', BURIED, me) then return -1 end
  return redis.call('HLEN', of_process(me))
end

function does.leave()
  forget(me)
  redis.call('ZREM', BEATS, me)
  redis.call('DEL', ends_of(me))
  return 0
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
return cmsgpack.pack({answers, ended})
