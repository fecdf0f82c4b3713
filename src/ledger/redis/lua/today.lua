-- Shared: the arguments that every script of a project begins with, and the check that the day which
-- the caller takes for today is the day of this clock. If it is not, nothing happens: {now, 'days'}.
--   ARGV 1 what all keys of the project begin with; 2 the day; 3 its first ms; 4 the first ms after
--   it; 5 the first day that is kept; 6 the day after it
local base, today, resets_at, first_kept, tomorrow = ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6]
if now < ARGV[3] + 0 or now >= resets_at + 0 then
  return {now, 'days'}
end
