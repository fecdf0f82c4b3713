-- Names what this server holds: a name that is gone, or another, tells of lost data.
--   KEYS 1 the name
--   ARGV 1 the name to take where there is none
--   {now, 'identity', name}
if redis.call('SET', KEYS[1], ARGV[1], 'NX') then
  return {now, 'identity', ARGV[1]}
end
return {now, 'identity', redis.call('GET', KEYS[1])}
