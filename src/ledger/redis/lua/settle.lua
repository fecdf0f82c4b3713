-- Ends reservations, one call after the other: charges what was handed out, at most the reserved size.
--   KEYS 1 what all keys of the project begin with
--   ARGV 1-6 today.lua; then for each call seven: id; actual; size; day of the admission or ''; last
--        deadline known; outcome; context
--   {now, 'done', answer of the first, answer of the second, ...}   each a text:
--      settled charged
--      settled charged unreserved    charged for the first time, beyond any reservation
--      late              unknown, and too old to be believed: nothing changed
--      failed why        this call could not be executed
-- The smaller of two strings.
local function least(one, other)
  return tonumber(one) > tonumber(other) and other or one
end

local function settled(key, day, size, charged, unreserved)
  put_mark(key, 'S', day, size, charged)
  return 'settled ' .. charged .. (unreserved and ' unreserved' or '')
end

local function settle(id, actual, size, day, deadline, outcome, context)
  local key = base .. 'id:' .. id
  local record = known(key)
  if record and record.state == 'S' then
    return 'settled ' .. record.amount
  end
  if record and record.state ~= 'X' then
    actual = least(actual, record.size)
    local of, unreserved = account(record.day), false
    if record.state == 'R' then
      give_back(of, id, record.size)
      post(of, actual, record.size, outcome, id, record.rest)
    else
      local difference = actual - record.amount
      unreserved = difference > 0
      post(of, difference, record.size, unreserved and 'unreserved' or 'corrected', id, context, true)
    end
    return settled(key, record.day, record.size, actual, unreserved)
  end
  actual = least(actual, size)
  if tonumber(actual) == 0 then
    return settled(key, today, size, '0')
  end
  if day == '' or now > deadline + UNRESERVED_MS or day < first_kept or day > tomorrow then
    return 'late'
  end
  post(account(day), actual, size, 'unreserved', id, context)
  return settled(key, day, size, actual, true)
end

local reply = {now, 'done'}
for n = 7, LAST_ARGUMENT, 7 do
  local sound, answer = pcall(
    settle, ARGV[n], ARGV[n + 1], ARGV[n + 2], ARGV[n + 3], ARGV[n + 4], ARGV[n + 5], ARGV[n + 6])
  reply[#reply + 1] = sound and answer or failed(answer)
end
save()
return reply
