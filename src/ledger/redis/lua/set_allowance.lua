-- Sets the allowance of a project, or returns it to the default. It is the one thing kept without a
-- time to live, if it is set without an end: it must not vanish by itself.
--   KEYS 1 the override
--   ARGV 1-6 today.lua; 7 bytes, 'unlimited', or '' for the default; 8 when it ends, or '-'; 9 who and
--        why, as JSON
--   {now, 'done'}
redis.call('DEL', KEYS[1])
local bytes, ends = ARGV[7], ARGV[8]
if bytes ~= '' and (ends == '-' or now < tonumber(ends)) then
  redis.call('SET', KEYS[1], bytes .. ' ' .. ends .. ' ' .. ARGV[9])
  if ends ~= '-' then
    -- At most a century, which is as good as none.
    redis.call('PEXPIRE', KEYS[1], whole(math.min(tonumber(ends) - now + 1000, 3155760000000)))
  end
end
return {now, 'done'}
