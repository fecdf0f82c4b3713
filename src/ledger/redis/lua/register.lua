-- Puts a project on the sweeper's list: {project by the time before which none of its leases is due}.
--   KEYS 1 the list
--   ARGV 1 the project
--   {now, 'done'}
redis.call('ZADD', KEYS[1], 'NX', string.format('%d', now + LEASE_MS), ARGV[1])
redis.call('PEXPIRE', KEYS[1], KEEP_MS)
return {now, 'done'}
