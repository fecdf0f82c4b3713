-- A stretch of the audit of a day, after its due leases were swept.
--   KEYS 1, ARGV 1 today.lua; 2 day, or '' for today; 3 the newest sequence number wanted, or '' for the newest
--        there is; 4 how many lines to look at; 5... only lines that contain each of these texts
--   {now, 'page', day, used, counted, below, sequence, line, sequence, line, ...}   newest first;
--        `below` is the sequence number that the next stretch begins at, 0 if there is none
--   {now, 'gone', day}    the day is no longer kept
--   {now, 'again'}        more leases are due: repeat
local day = ARGV[2] == '' and today or ARGV[2]
if day < first_kept then
  return {now, 'gone', day}
end
local of = account(day)
if sweep(of, SWEEP_BATCH) then
  return {now, 'again'}
end
local newest = math.min(tonumber(ARGV[3]) or of.lines, of.lines)
local below = math.max(newest - tonumber(ARGV[4]), 0)
local reply = {now, 'page', day, of.used, of.counted, below}
if newest <= below then
  return reply
end
local lines = redis.call('LRANGE', of.list, whole(below), whole(newest - 1))
for n = #lines, 1, -1 do
  local wanted = true
  for part = 5, LAST_ARGUMENT do
    wanted = wanted and string.find(lines[n], ARGV[part], 1, true)
  end
  if wanted then
    reply[#reply + 1] = below + n
    reply[#reply + 1] = lines[n]
  end
end
return reply
