-- Expires leases of a project that are due, in the order given.
--   KEYS 1, ARGV 1 today.lua; 2, 3 the day and id of the first; 4, 5 of the second; ...
--   {now, 'expired', how many}
local count = 0
for n = 2, LAST_ARGUMENT, 2 do
  local day, id = ARGV[n], ARGV[n + 1]
  local record = known(base .. 'id:' .. id)
  -- Extended or ended since it was looked at: not due any more.
  if not record or record.state ~= 'R' or record.moment <= now then
    expire(account(day), id)
    if record and record.state == 'R' then
      count = count + 1
    end
  end
end
save()
return {now, 'expired', count}
