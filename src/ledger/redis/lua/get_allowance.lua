-- The allowance set for a project.
--   KEYS 1 the override
--   ARGV 1-6 today.lua
--   {now, 'set', bytes or 'unlimited', when it ends or '', who, why}
--   {now, 'none'}    none is set, or it has ended
local set = redis.call('HMGET', KEYS[1], 'bytes', 'until', 'by', 'reason')
if not set[1] or (set[2] ~= '' and now >= tonumber(set[2])) then
  return {now, 'none'}
end
return {now, 'set', set[1], set[2], set[3], set[4]}
