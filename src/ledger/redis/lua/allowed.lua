-- Shared: the allowance in force, a decimal string or 'unlimited'.
-- The override is one string: `bytes until by-and-why`, until being '-' where it has no end.
local function allowed()
  local text = redis.call('GET', base .. 'allowance')
  if text then
    local bytes, ends = string.match(text, '^(%S+) (%S+) ')
    if ends == '-' or now < tonumber(ends) then
      return bytes
    end
  end
  return ALLOWANCE
end
