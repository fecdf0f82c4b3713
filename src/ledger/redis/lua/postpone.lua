-- Says when projects are to be looked at again.
--   KEYS 1 the sweeper's list
--   ARGV 1, 2 a project and the time, or '' to take it off the list; 3, 4 the next; ...
--   {now, 'done'}
for n = 1, LAST_ARGUMENT, 2 do
  if ARGV[n + 1] == '' then
    redis.call('ZREM', KEYS[1], ARGV[n])
  else
    redis.call('ZADD', KEYS[1], 'XX', ARGV[n + 1], ARGV[n])
  end
end
return {now, 'done'}
