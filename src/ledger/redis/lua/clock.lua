-- Shared: now, the only clock of the books, ms since the Unix epoch; and where the arguments end.
local now
local LAST_ARGUMENT = #ARGV
do
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
