-- For each key a list of microsecond stamps, oldest first. Stamps from the future (Redis' clock was set
-- back) go too: that over-admits once, where keeping them would lock the account out for as long as the step.
-- ARGV holds two numbers for each key: its limit, and how many requests ask one after the other (0: a look).
-- Returned are three for each: how many of them were admitted, how many slots are taken then, and in how many
-- microseconds the next one frees.
local time = redis.call('TIME')
local now, window = time[1] * 1000000 + time[2], 60000000
local stamp, answers, at_once = string.format('%.0f', now), {}, 1000

local function at(key, place)
  return tonumber(redis.call('LINDEX', key, place))
end

local function push(key, count)
  if count == 1 then return redis.call('RPUSH', key, stamp) end
  local stamps = {}
  for place = 1, math.min(count, at_once) do stamps[place] = stamp end
  redis.call('RPUSH', key, unpack(stamps))
  if count > at_once then push(key, count - at_once) end
end

for index, key in ipairs(KEYS) do
  local limit, asked = tonumber(ARGV[2 * index - 1]), tonumber(ARGV[2 * index])
  local used, first = redis.call('LLEN', key), now
  if used > 0 then
    first = at(key, 0)
    while first and first <= now - window do
      redis.call('LPOP', key)
      used, first = used - 1, used > 1 and at(key, 0)
    end
    while used > 0 and at(key, -1) > now do
      redis.call('RPOP', key)
      used = used - 1
    end
    if used == 0 then first = now end
  end
  local admitted = math.max(0, math.min(asked, limit - used))
  if admitted > 0 then
    push(key, admitted)
    redis.call('PEXPIRE', key, 61000)
    used = used + admitted
  end
  if used > limit then first = at(key, used - limit) end
  answers[3 * index - 2] = admitted
  answers[3 * index - 1] = used
  answers[3 * index] = used > 0 and first + window - now or 0
end
return answers
