-- Shared: ends leases and charges accounts.
-- Adds to the line of the hour, key, channel and outcome.
local function roll_up(of, list, head, charged, size, outcome)
  local index, hour = of.start .. ':rolled', now - now % 3600000
  local name = outcome .. ' ' .. whole(hour) .. ' ' .. head
  local place, count = redis.call('HGET', index, name), 0
  if place then
    local text = redis.call('LINDEX', list, place)
    local charged_before, size_before, count_before = string.match(text, '^%d+ (%-?%d+) (%d+) %a+ (%d+) ')
    charged, size, count = charged + charged_before, math.min(size + size_before, MAX), tonumber(count_before)
  end
  local text = string.format('%d %d %d %s %d - %s', hour, charged, size, outcome, count + 1, head)
  if place then
    redis.call('LSET', list, place, text)
    return
  end
  of.lines = redis.call('RPUSH', list, text)
  redis.call('HSET', index, name, whole(of.lines - 1))
  redis.call('PEXPIRE', index, KEEP_MS)
end

local function write(of, charged, size, outcome, id, subject)
  local list = of.start .. ':lines'
  local head = of.lines >= MAX_ENTRIES and string.match(subject, '^([^\t]*)\t')
  if head then
    roll_up(of, list, head, charged, size, outcome)
    return
  end
  local text = whole(now) .. ' ' .. whole(charged) .. ' ' .. size .. ' ' .. outcome .. ' 1 ' .. id .. ' ' .. subject
  of.lines = redis.call('RPUSH', list, text)
  if of.lines == 1 then
    redis.call('PEXPIRE', list, KEEP_MS)
  end
end

-- Charges the account and writes the line; answers what was charged. A charge that would leave 0 to
-- MAX is cut to what fits. `size` is a string.
local function post(of, charge, size, outcome, id, subject, skip_zero)
  local used = math.min(math.max(of.used + charge, 0), MAX)
  local charged = used - of.used
  if charged == 0 and skip_zero then
    return charged
  end
  write(of, charged, size, outcome, id, subject)
  of.used, of.counted, of.changed = used, of.counted + 1, true
  return charged
end

local function give_back(of, id, size)
  redis.call('ZREM', of.start .. ':due', id)
  of.reserved, of.open, of.changed = math.max(of.reserved - size, 0), math.max(of.open - 1, 0), true
end
