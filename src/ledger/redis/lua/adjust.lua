-- Corrects what was charged to a day, once per id.
--   KEYS 1 what is remembered of the adjustment: `day applied bytes reason`
--   ARGV 1-6 today.lua; 7 day; 8 bytes, signed; 9 subject; 10 reason, as JSON
--   {now, 'applied', bytes}
--   {now, 'conflict'}       the id was used for another day, amount or reason
--   {now, 'no_such_day'}
local day = ARGV[7]
if day < first_kept or day > tomorrow then
  return {now, 'no_such_day'}
end
local before = redis.call('GET', KEYS[1])
if before then
  local on, applied, bytes, reason = string.match(before, '^(%S+) (%-?%d+) (%-?%d+) (.*)$')
  if on >= first_kept then
    if on ~= day or bytes ~= ARGV[8] or reason ~= ARGV[10] then
      return {now, 'conflict'}
    end
    return {now, 'applied', applied}
  end
end
local of = account(day)
local applied = post(of, ARGV[8], '0', 'adjusted', '-', ARGV[9])
save()
redis.call('SET', KEYS[1], day .. ' ' .. applied .. ' ' .. ARGV[8] .. ' ' .. ARGV[10], 'PX', KEEP_MS)
return {now, 'applied', applied}
