-- The account today, after due leases of today were swept.
--   KEYS 1 today's account
--   ARGV 1-6 today.lua
--   {now, 'usage', allowance, used, reserved, open, refused}
--   {now, 'again'}    more leases are due: repeat
local of = account(today)
if sweep(of, SWEEP_BATCH) then
  return {now, 'again'}
end
return {now, 'usage', allowed(), of.used, of.reserved, of.open, of.refused}
