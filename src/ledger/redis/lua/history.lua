-- The accounts of some days, after the due leases of each were swept.
--   KEYS 1, ARGV 1 today.lua; 2... the days, today first
--   {now, 'history', allowance in force, then for each day:
--        allowance of its last reservation or '-', used, reserved, refused, lines, counted}
--   {now, 'again'}    more leases are due: repeat
local reply = {now, 'history', (allowed(now, base))}
for n = 2, LAST_ARGUMENT do
  local of = account(ARGV[n])
  if of.open > 0 and sweep(of, SWEEP_BATCH) then
    return {now, 'again'}
  end
  for _, value in ipairs({of.allowance, of.used, of.reserved, of.refused, of.lines, of.counted}) do
    reply[#reply + 1] = value
  end
end
return reply
