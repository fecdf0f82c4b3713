-- Shared: lines that are rolled up, one for each hour, key, channel and outcome. Adds to the line of this hour;
-- answers how many lines that made.
local function roll(start, outcome, head, charged, size, count)
  local index, list, hour = start .. ':rolled', start .. ':lines', now - now % 3600000
  local name = outcome .. ' ' .. whole(hour) .. ' ' .. head
  local place = redis.call('HGET', index, name)
  if place then
    local text = redis.call('LINDEX', list, place)
    local charged_before, size_before, count_before = string.match(text, '^%d+ (%-?%d+) (%d+) %a+ (%d+) ')
    charged, size, count = charged + charged_before, size + size_before, count + count_before
  end
  local text = string.format('%d %d %d %s %d - %s', hour, charged, math.min(size, MAX), outcome, count, head)
  if place then
    redis.call('LSET', list, place, text)
    return 0
  end
  redis.call('HSET', index, name, whole(redis.call('RPUSH', list, text) - 1))
  redis.call('PEXPIRE', index, KEEP_MS)
  return 1
end
