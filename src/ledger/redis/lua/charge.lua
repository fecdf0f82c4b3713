-- Shared: ends leases and charges accounts.
local written_at = whole(now)

-- Writes a line; where the day has many, adds to one that is rolled up.
local function write(of, charged, size, outcome, id, subject)
  local head = of.lines >= MAX_ENTRIES and string.match(subject, '^([^\t]*)\t')
  if head then
    of.lines = of.lines + roll(of.start, outcome, head, charged + 0, size + 0, 1)
    return
  end
  of.lines = of.lines + 1
  local text = written_at .. ' ' .. charged .. ' ' .. size .. ' ' .. outcome .. ' 1 ' .. id .. ' ' .. subject
  if redis.call('RPUSH', of.list, text) == 1 then
    redis.call('PEXPIRE', of.list, KEEP_MS)
  end
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
  put(key, state, day, written_at, size, charged, '', MARK_LIVES_MS)
end
