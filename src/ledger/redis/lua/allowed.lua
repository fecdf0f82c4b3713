-- Shared: the allowance in force, a decimal string or 'unlimited', and whether an override is stored, '1' or '0'.
-- The override is one string: `bytes until by-and-why`, until being '-' where it has no end.
local function allowed(now, base)
  local override = redis.call('GET', base .. 'allowance')
  if not override then
    return ALLOWANCE, '0'
  end
  local bytes, ends = string.match(override, '^(%S+) (%S+) ')
  return (ends == '-' or now < tonumber(ends)) and bytes or ALLOWANCE, '1'
end
