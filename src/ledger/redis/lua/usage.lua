-- The account today, after due leases of today were swept.
--   KEYS 1, ARGV 1 today.lua
--   {now, 'usage', allowance, used, reserved, open, refused, earliest deadline or '-'}
--   {now, 'again'}    more leases are due: repeat
local of = account(today)
if sweep(of, SWEEP_BATCH) then
  return {now, 'again'}
end
local allowance = allowed(now, base)
local earliest = redis.call('ZRANGEBYSCORE', of.due, '-inf', '(inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or '-'
return {now, 'usage', allowance, of.used, of.reserved, of.open, of.refused, earliest}
