-- Ends a reservation: charges what was handed out, at most the reserved size.
--   KEYS 1 the id's record
--   ARGV 1-6 today.lua; 7 id; 8 actual; 9 size; 10 day of the admission or ''; 11 last deadline known;
--        12 outcome; 13 context
--   {now, 'settled', charged}
--   {now, 'settled', charged, 'unreserved'}    charged for the first time, beyond any reservation
--   {now, 'late'}    unknown, and too old to be believed: nothing changed
local id, actual, outcome, context = ARGV[7], tonumber(ARGV[8]), ARGV[12], ARGV[13]

local function settled(day, size, charged, unreserved)
  put_mark(KEYS[1], 'S', day, size, charged)
  return {now, 'settled', charged, unreserved}
end

local record = known(KEYS[1])
if record and record.state == 'S' then
  return {now, 'settled', record.amount}
end
if record and record.state ~= 'X' then
  actual = math.min(actual, record.size)
  local of, unreserved = account(record.day), nil
  if record.state == 'R' then
    give_back(of, id, record.size)
    post(of, actual, record.size, outcome, id, record.rest)
  else
    local difference = actual - record.amount
    unreserved = difference > 0 and 'unreserved' or nil
    post(of, difference, record.size, unreserved or 'corrected', id, context, true)
  end
  save(of)
  return settled(record.day, record.size, actual, unreserved)
end

local size, day = tonumber(ARGV[9]), ARGV[10]
actual = math.min(actual, size)
if actual == 0 then
  return settled(today, size, 0)
end
if day == '' or now > tonumber(ARGV[11]) + UNRESERVED_MS or day < first_kept or day > tomorrow then
  return {now, 'late'}
end
local of = account(day)
post(of, actual, size, 'unreserved', id, context)
save(of)
return settled(day, size, actual, 'unreserved')
