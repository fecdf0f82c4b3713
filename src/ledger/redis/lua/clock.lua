-- Shared: now, the only clock of the books, ms since the Unix epoch.
local now
do
  local time = redis.call('TIME')
  now = time[1] * 1000 + time[2] / 1000
  -- Half the cost of math.floor().
  now = now - now % 1
end
