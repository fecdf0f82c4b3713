-- The allowance set for a project.
--   KEYS 1, ARGV 1 today.lua
--   {now, 'set', bytes or 'unlimited', when it ends or '-', who and why as JSON}
--   {now, 'none'}    none is set, or it has ended
local text = redis.call('GET', base .. 'allowance')
local bytes, ends, why = string.match(text or '', '^(%S+) (%S+) (.*)$')
if not bytes or (ends ~= '-' and now >= tonumber(ends)) then
  return {now, 'none'}
end
return {now, 'set', bytes, ends, why}
