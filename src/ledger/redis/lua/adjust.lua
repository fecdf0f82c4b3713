-- Corrects what was charged to a day, once per id.
--   KEYS 1, ARGV 1 today.lua; 2 id; 3 day; 4 bytes, signed; 5 subject; 6 reason, as JSON
--   {now, 'applied', bytes}
--   {now, 'conflict'}       the id was used for another day, amount or reason
--   {now, 'no_such_day'}
-- What is remembered of it: `day applied bytes reason`.
local key = base .. 'adjustment:' .. ARGV[2]
local day = ARGV[3]
if day < first_kept or day > tomorrow then
  return {now, 'no_such_day'}
end
local before = redis.call('GET', key)
if before then
  local on, applied, bytes, reason = string.match(before, '^(%S+) (%-?%d+) (%-?%d+) (.*)$')
  if on >= first_kept then
    if on ~= day or bytes ~= ARGV[4] or reason ~= ARGV[6] then
      return {now, 'conflict'}
    end
    return {now, 'applied', applied}
  end
end
local of = account(day)
local applied = post(of, ARGV[4], '0', 'adjusted', '-', ARGV[5])
save()
redis.call('SET', key, day .. ' ' .. applied .. ' ' .. ARGV[4] .. ' ' .. ARGV[6], 'PX', KEEP_MS)
return {now, 'applied', applied}
