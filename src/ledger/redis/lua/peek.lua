-- What the sweeper wants to know of a project: its earliest due leases, on whatever day.
--   KEYS 1, ARGV 1 today.lua; 2 at most so many of each day; 3 the day before today
--   {now, 'due', accounts that there are of today and the day before, earliest deadline or '',
--        deadline, day, id, deadline, day, id, ...}
local in_use = redis.call('EXISTS', base .. today .. ':account', base .. ARGV[3] .. ':account')
local reply, earliest = {now, 'due', in_use, ''}, math.huge
for _, day in ipairs(redis.call('SMEMBERS', base .. 'days')) do
  local index = base .. day .. ':due'
  local first = redis.call('ZRANGEBYSCORE', index, '-inf', '(inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if first[2] then
    earliest = math.min(earliest, tonumber(first[2]))
    reply[4] = whole(earliest)
  end
  local due = redis.call('ZRANGEBYSCORE', index, '-inf', whole(now), 'WITHSCORES', 'LIMIT', 0, ARGV[2])
  for n = 1, #due, 2 do
    reply[#reply + 1] = due[n + 1]
    reply[#reply + 1] = day
    reply[#reply + 1] = due[n]
  end
end
return reply
