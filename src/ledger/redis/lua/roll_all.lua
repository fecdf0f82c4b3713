-- Shared: all that a script rolls up, within `roll_up` of settle.lua; answers how many lines that made, or an error.
local made = 0
for _, sums in pairs(rolled) do
  local sound, more = pcall(roll, start, unpack(sums))
  if not sound then
    return type(more) == 'table' and more or redis.error_reply(more)
  end
  made = made + more
end
return made
