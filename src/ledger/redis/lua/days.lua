-- Shared: puts the account's day on the list of days, and takes off those that have no open leases any more;
-- the latest before it stays, should the clock be set back across midnight. The day's index gets the entry that
-- is never due: it keeps the index there, and so its time to live, which to set for each first lease would cost
-- a tenth of a reserve.
local function list_day(of)
  local days, latest = base .. 'days', ''
  local listed = redis.call('SMEMBERS', days)
  for _, day in ipairs(listed) do
    if day < of.day and day > latest then
      latest = day
    end
  end
  for _, day in ipairs(listed) do
    if day < latest and redis.call('ZCOUNT', base .. day .. ':due', '-inf', '(inf') == 0 then
      redis.call('SREM', days, day)
      change_flag(day, '48', '1', '0')
    end
  end
  redis.call('ZADD', of.due, 'inf', '')
  redis.call('PEXPIRE', of.due, KEEP_MS)
  redis.call('SADD', days, of.day)
  redis.call('PEXPIRE', days, KEEP_MS)
  of.listed, of.changed = '1', true
end
