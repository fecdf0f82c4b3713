-- Records a link until it expires. Once its id is known, or its time is over, nothing changes.
--   KEYS 1 the link
--   ARGV 1-6 today.lua; 7 id; 8 its last moment; 9 key, trial and artifact, as JSON
--   {now, 'done'}
local id, expires = ARGV[7], ARGV[8]
prune_links()
if tonumber(expires) < now or link(id) then
  return {now, 'done'}
end
local lives_ms = put_link(id, expires, 0, ARGV[9])
redis.call('ZADD', LIST, 0, id)
redis.call('ZADD', EXPIRY, expires, id)
-- The lists live as long as their longest link.
for _, key in ipairs({LIST, EXPIRY}) do
  if redis.call('PTTL', key) < lives_ms then
    redis.call('PEXPIRE', key, whole(lives_ms))
  end
end
return {now, 'done'}
