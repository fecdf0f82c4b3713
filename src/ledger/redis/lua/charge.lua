-- Shared: ends leases and charges accounts.
local written_at, forgotten_at = whole(now), whole(now + TOMBSTONE_MS)

-- Writes a line; where the day has many, adds to the line of the hour, key, channel and outcome.
local function write(of, charged, size, outcome, id, subject)
  local list = of.list
  local head = of.lines >= MAX_ENTRIES and string.match(subject, '^([^\t]*)\t')
  if not head then
    local text = written_at .. ' ' .. charged .. ' ' .. size .. ' ' .. outcome .. ' 1 ' .. id .. ' ' .. subject
    of.lines = of.lines + 1
    if redis.call('RPUSH', list, text) == 1 then
      redis.call('PEXPIRE', list, KEEP_MS)
    end
    return
  end
  local index, hour = of.start .. ':rolled', now - now % 3600000
  local name = outcome .. ' ' .. whole(hour) .. ' ' .. head
  local place, count = redis.call('HGET', index, name), 0
  if place then
    local text = redis.call('LINDEX', list, place)
    local charged_before, size_before, count_before = string.match(text, '^%d+ (%-?%d+) (%d+) %a+ (%d+) ')
    charged, size, count = charged + charged_before, math.min(size + size_before, MAX), count_before + 0
  end
  local text = string.format('%d %d %d %s %d - %s', hour, charged, size, outcome, count + 1, head)
  if place then
    redis.call('LSET', list, place, text)
    return
  end
  of.lines = of.lines + 1
  redis.call('HSET', index, name, whole(redis.call('RPUSH', list, text) - 1))
  redis.call('PEXPIRE', index, KEEP_MS)
end

-- Charges the account and writes the line; answers what was charged, in a text as `charge` and `size`
-- are. A charge that would leave 0 to MAX is cut to what fits.
local function post(of, charge, size, outcome, id, subject, skip_zero)
  local asked = charge + 0
  local used = math.min(math.max(of.used + asked, 0), MAX)
  local charged = used - of.used
  if charged == 0 and skip_zero then
    return '0'
  end
  if charged ~= asked then
    charge = whole(charged)
  end
  write(of, charge, size, outcome, id, subject)
  of.used, of.counted, of.changed = used, of.counted + 1, true
  return charge
end

local function give_back(of, id, size)
  redis.call('ZREM', of.due, id)
  of.reserved, of.open, of.changed = math.max(of.reserved - size, 0), math.max(of.open - 1, 0), true
end

local function put_mark(key, state, day, size, charged)
  put(key, state, day, forgotten_at, size, charged, '', MARK_LIVES_MS)
end
