-- Raises the grant and the deadline of an open lease; neither ever falls.
--   KEYS 1, ARGV 1 today.lua; 2 id; 3 grant asked for; 4 the caller's time when it first asked
--   {now, 'reserved', grant, day, deadline}
--   {now, 'ended'}    not open: nothing changed
local key = base .. 'id:' .. ARGV[2]
local record = known(key)
if not record or record.state ~= 'R' then
  return {now, 'ended'}
end
local day = record.day
local grant = math.max(record.amount, math.min(tonumber(ARGV[3]), record.size))
local deadline = math.max(record.moment, math.min(now, tonumber(ARGV[4])) + LEASE_MS)
put(key, 'R', day, whole(deadline), record.size, whole(grant), record.rest, KEEP_MS)
redis.call('ZADD', base .. day .. ':due', whole(deadline), ARGV[2])
-- The books of the day live as long as its leases do, should a read take weeks.
if redis.call('PTTL', base .. day .. ':account') < KEEP_MS / 2 then
  for _, key in ipairs({base .. 'days', base .. day .. ':account', base .. day .. ':due', base .. day .. ':lines', base .. day .. ':rolled'}) do
    redis.call('PEXPIRE', key, KEEP_MS)
  end
end
return {now, 'reserved', grant, day, deadline}
