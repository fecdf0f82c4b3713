-- Raises the grant and the deadline of an open lease; neither ever falls.
--   KEYS 1 the id's record
--   ARGV 1-6 today.lua; 7 id; 8 grant asked for; 9 the caller's time when it first asked
--   {now, 'reserved', grant, day, deadline}
--   {now, 'ended'}    not open: nothing changed
local record = known(KEYS[1])
if not record or record.state ~= 'R' then
  return {now, 'ended'}
end
local day = record.day
local grant = math.max(record.amount, math.min(tonumber(ARGV[8]), record.size))
local deadline = math.max(record.moment, math.min(now, tonumber(ARGV[9])) + LEASE_MS)
put(KEYS[1], 'R', day, record.size, whole(grant), whole(deadline), record.rest, KEEP_MS)
redis.call('ZADD', base .. day .. ':due', whole(deadline), ARGV[7])
-- The books of the day live as long as its leases do, should a read take weeks.
if redis.call('PTTL', base .. day .. ':account') < KEEP_MS / 2 then
  for _, key in ipairs({base .. 'days', base .. day .. ':account', base .. day .. ':due', base .. day .. ':lines', base .. day .. ':rolled'}) do
    redis.call('PEXPIRE', key, KEEP_MS)
  end
end
return {now, 'reserved', grant, day, deadline}
