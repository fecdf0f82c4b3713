-- Shared: changes a flag at the end of an account from `was` to `is`, whatever else the account says; what has
-- no such flag stays as it is.
local function change_flag(day, place, was, is)
  local key = base .. day .. ':account'
  if redis.pcall('GETRANGE', key, place, place) == was then
    redis.call('SETRANGE', key, place, is)
  end
end
