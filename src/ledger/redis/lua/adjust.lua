-- Corrects what was charged to a day, once per id.
--   KEYS 1 what is remembered of the adjustment: `day applied`
--   ARGV 1-6 today.lua; 7 day; 8 bytes, signed; 9 subject
--   {now, 'applied', bytes}
--   {now, 'no_such_day'}
local day = ARGV[7]
if day < first_kept or day > tomorrow then
  return {now, 'no_such_day'}
end
local before = redis.call('GET', KEYS[1])
if before then
  local on, applied = string.match(before, '^(%S+) (%-?%d+)$')
  if on >= first_kept then
    return {now, 'applied', applied}
  end
end
local of = account(day)
local applied = post(of, tonumber(ARGV[8]), 0, 'adjusted', '-', ARGV[9])
save()
redis.call('SET', KEYS[1], day .. ' ' .. whole(applied), 'PX', KEEP_MS)
return {now, 'applied', applied}
