-- Recomputes the sums of a day from its lines and leases, after its due leases were swept. Lines are
-- added up by stretches; the leases with the first.
--   KEYS 1, ARGV 1 today.lua; 2 day, or '' for today; 3 lines already added up; 4 how many to add up now
--   {now, 'tally', used, reserved, lines, counted, charged, leases, leased, indexed}
--        `lines` that the account has, `charged` by the lines of this stretch
--   {now, 'gone'}     the day is no longer kept
--   {now, 'again'}    more leases are due: repeat
local day = ARGV[2] == '' and today or ARGV[2]
if day < first_kept then
  return {now, 'gone'}
end
local of = account(day)
if sweep(of, SWEEP_BATCH) then
  return {now, 'again'}
end
local from, charged = tonumber(ARGV[3]), 0
for _, text in ipairs(redis.call('LRANGE', of.list, ARGV[3], whole(from + ARGV[4] - 1))) do
  charged = charged + string.match(text, '^%d+ (%-?%d+)')
end
local leases, leased, ids = 0, 0, {}
if from == 0 then
  ids = redis.call('ZRANGEBYSCORE', of.due, '-inf', '(inf')
  for _, id in ipairs(ids) do
    local record = known(base .. 'id:' .. id)
    if record and record.state == 'R' and record.day == day then
      leases, leased = leases + 1, leased + record.size
    end
  end
end
local lines = redis.call('LLEN', of.list)
return {now, 'tally', of.used, of.reserved, lines, of.counted, charged, leases, leased, #ids}
