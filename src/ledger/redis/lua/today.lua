-- Shared: what every script of a project begins with, and the check that the day which the caller takes for
-- today is the day of this clock. If it is not, nothing happens: {now, 'days'}.
--   KEYS 1 what all keys of the project begin with
--   ARGV 1 `>I8I8c10c10c10` of struct: the first ms of the day; the first ms after it; the day; the first day
--          that is kept; the day after it. One argument, for each costs more than to take all of this apart.
local base = KEYS[1]
local begins, resets_at, today = struct.unpack('>I8I8c10', ARGV[1])
if now < begins or now >= resets_at then
  return {now, 'days'}
end
