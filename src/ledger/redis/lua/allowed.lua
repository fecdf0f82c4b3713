-- Shared: the allowance in force, a decimal string or 'unlimited'.
-- The override is one string: `bytes until by-and-why`, until being '-' where it has no end.
local allowance = ALLOWANCE
do
  local override = redis.call('GET', base .. 'allowance')
  if override then
    local bytes, ends = string.match(override, '^(%S+) (%S+) ')
    if ends == '-' or now < tonumber(ends) then
      allowance = bytes
    end
  end
end
