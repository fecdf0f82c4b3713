-- The projects that may have due leases.
--   KEYS 1 the sweeper's list
--   ARGV 1 at most so many
--   {now, 'look', project, project, ...}
local reply = {now, 'look'}
local projects = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now), 'LIMIT', 0, ARGV[1])
for n = 1, #projects do
  reply[n + 2] = projects[n]
end
return reply
