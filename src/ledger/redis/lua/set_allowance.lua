-- Sets the allowance of a project, or returns it to the default. It is the one thing kept without a
-- time to live, if it is set without an end: it must not vanish by itself.
--   KEYS 1, ARGV 1 today.lua; 2 bytes, 'unlimited', or '' for the default; 3 when it ends, or '-'; 4 who and
--        why, as JSON
--   {now, 'done'}
local key = base .. 'allowance'
redis.call('DEL', key)
local bytes, ends = ARGV[2], ARGV[3]
if bytes ~= '' and (ends == '-' or now < tonumber(ends)) then
  redis.call('SET', key, bytes .. ' ' .. ends .. ' ' .. ARGV[4])
  -- Accounts of days on the list say that there is none; whatever day comes to be today, it must not be missed.
  for _, day in ipairs(redis.call('SMEMBERS', base .. 'days')) do
    change_flag(day, '49', '0', '1')
  end
  if ends ~= '-' then
    -- At most a century, which is as good as none.
    redis.call('PEXPIRE', key, whole(math.min(tonumber(ends) - now + 1000, 3155760000000)))
  end
end
return {now, 'done'}
