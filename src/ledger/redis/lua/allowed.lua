-- Shared: the allowance in force, a decimal string or 'unlimited'.
local function allowed()
  local set = redis.call('HMGET', base .. 'allowance', 'bytes', 'until')
  if set[1] and (set[2] == '' or now < tonumber(set[2])) then
    return set[1]
  end
  return ALLOWANCE
end
