-- Shared: the only code that changes accounts. Sums and lines are written together, so they agree.
--   base..day..':account'  `used reserved open refused lines counted listed allowance`, the last being what the
--                          latest reservation was judged by: bytes, 'unlimited', or '-' if there was none
--   base..day..':lines'    the audit, a list: `at charged size outcome count id subject`
--   base..day..':rolled'   the index in that list of each rolled-up line, by its name
--   base..day..':due'      ids of the open leases by deadline
--   base..'days'           the days that have had leases, where the account is `listed` (1, else 0)
-- A subject is `[channel,key]<tab>[trial,artifact,request]` for a read, with the id of the link fourth
-- if it was by one; its first half for a rolled-up line, an object for an adjustment.
local function account(day)
  local key = base .. day .. ':account'
  local text = redis.call('GET', key)
  if not text then
    return {
      key = key, day = day, fresh = true, used = 0, reserved = 0, open = 0, refused = 0, lines = 0, counted = 0, listed = 0,
      allowance = '-',
    }
  end
  local used, reserved, open, refused, lines, counted, listed, allowance =
    string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d) (%S+)$')
  return {
    key = key, day = day, used = tonumber(used), reserved = tonumber(reserved), open = tonumber(open),
    refused = tonumber(refused), lines = tonumber(lines), counted = tonumber(counted), listed = tonumber(listed),
    allowance = allowance,
  }
end

local function save(of)
  local text = string.format(
    '%d %d %d %d %d %d %d ', of.used, of.reserved, of.open, of.refused, of.lines, of.counted, of.listed) .. of.allowance
  if of.fresh then
    redis.call('SET', of.key, text, 'PX', KEEP_MS)
    of.fresh = false
  else
    redis.call('SET', of.key, text, 'KEEPTTL')
  end
end

local function line(at, charged, size, outcome, count, id, subject)
  return string.format('%d %d %d %s %d ', at, charged, size, outcome, count) .. id .. ' ' .. subject
end

local function write(of, charged, size, outcome, id, subject)
  local list = base .. of.day .. ':lines'
  local head = of.lines >= MAX_ENTRIES and string.match(subject, '^([^\t]*)\t')
  if not head then
    of.lines = redis.call('RPUSH', list, line(now, charged, size, outcome, 1, id, subject))
    if of.lines == 1 then
      redis.call('PEXPIRE', list, KEEP_MS)
    end
    return
  end
  local index, hour = base .. of.day .. ':rolled', now - now % 3600000
  local name = outcome .. ' ' .. whole(hour) .. ' ' .. head
  local place, count = redis.call('HGET', index, name), 0
  if place then
    local text = redis.call('LINDEX', list, place)
    local charged_before, size_before, count_before = string.match(text, '^%d+ (%-?%d+) (%d+) %a+ (%d+) ')
    charged, size, count = charged + charged_before, math.min(size + size_before, MAX), tonumber(count_before)
  end
  local text = line(hour, charged, size, outcome, count + 1, '-', head)
  if place then
    redis.call('LSET', list, place, text)
    return
  end
  of.lines = redis.call('RPUSH', list, text)
  redis.call('HSET', index, name, whole(of.lines - 1))
  redis.call('PEXPIRE', index, KEEP_MS)
end

-- Charges the account and writes the line; answers what was charged. A charge that would leave 0 to
-- MAX is cut to what fits.
local function post(of, charge, size, outcome, id, subject, skip_zero)
  local used = math.min(math.max(of.used + charge, 0), MAX)
  local charged = used - of.used
  if charged == 0 and skip_zero then
    return charged
  end
  of.used, of.counted = used, of.counted + 1
  write(of, charged, size, outcome, id, subject)
  return charged
end

-- Puts the account's day on the list of days, and takes off those that have no open leases any more;
-- the latest before it stays, should the clock be set back across midnight.
local function list_day(of)
  local days, latest = base .. 'days', ''
  local listed = redis.call('SMEMBERS', days)
  for _, day in ipairs(listed) do
    if day < of.day and day > latest then
      latest = day
    end
  end
  for _, day in ipairs(listed) do
    if day < latest and redis.call('EXISTS', base .. day .. ':due') == 0 then
      redis.call('SREM', days, day)
    end
  end
  redis.call('SADD', days, of.day)
  redis.call('PEXPIRE', days, KEEP_MS)
  of.listed = 1
end

local function take(of, id, size, deadline)
  of.reserved, of.open = of.reserved + size, of.open + 1
  local due = base .. of.day .. ':due'
  redis.call('ZADD', due, whole(deadline), id)
  if of.open == 1 then
    redis.call('PEXPIRE', due, KEEP_MS)
  end
  if of.listed == 0 then
    list_day(of)
  end
end

local function give_back(of, id, size)
  of.reserved, of.open = math.max(of.reserved - size, 0), math.max(of.open - 1, 0)
  redis.call('ZREM', base .. of.day .. ':due', id)
end
