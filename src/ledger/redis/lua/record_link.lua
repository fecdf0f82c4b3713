-- Records a link until it expires. Once its id is known, or its time is over, nothing changes.
--   KEYS 1, ARGV 1 today.lua; 2 id; 3 its last moment; 4 key, trial and artifact, as JSON
--   {now, 'done'}
local id, expires = ARGV[2], ARGV[3]
prune_links()
if tonumber(expires) < now or link(id) then
  return {now, 'done'}
end
local lives_ms = put_link(id, expires, 0, ARGV[4])
redis.call('ZADD', LIST, 0, id)
redis.call('ZADD', EXPIRY, expires, id)
-- The lists live as long as their longest link.
for _, key in ipairs({LIST, EXPIRY}) do
  if redis.call('PTTL', key) < lives_ms then
    redis.call('PEXPIRE', key, whole(lives_ms))
  end
end
return {now, 'done'}
