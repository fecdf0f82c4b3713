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
  return one ~= other and one + 0 > other + 0 and other or one
end

-- Settles what is no open lease.
local function settle_late(key, record, id, actual, size, day, deadline, context)
  if record and record.state == 'S' then
    return 'settled ' .. record.amount
  end
  local charged, unreserved = '0', ''
  if record and record.state == 'E' then
    day, size = record.day, record.size
    charged = least(actual, size)
    local difference = charged - record.amount
    unreserved = difference > 0 and ' unreserved' or ''
    post(account(day), whole(difference), size, difference > 0 and 'unreserved' or 'corrected', id, context, true)
  elseif least(actual, size) + 0 == 0 then
    day = today
  elseif day == '' or now > deadline + UNRESERVED_MS or day < first_kept or day > tomorrow then
    return 'late'
  else
    charged, unreserved = least(actual, size), ' unreserved'
    post(account(day), charged, size, 'unreserved', id, context)
  end
  put_mark(key, 'S', day, size, charged)
  return 'settled ' .. charged .. unreserved
end

local function settle(id, actual, size, day, deadline, outcome, context)
  local key = base .. 'id:' .. id
  local text = redis.call('GET', key)
  -- Almost always it is the open lease that the caller takes it for: day and size in front, context at
  -- the end. To see that costs a tenth of taking the record apart. (No context is the end of another: it
  -- begins with `["CHANNEL"`, which no text in JSON contains, and has the tab.)
  if not text or string.find(text, 'R ' .. day .. ' ' .. size .. ' ', 1, true) ~= 1
    or not string.find(text, context, -#context, true) then
    local record = text and understood(text)
    if not record or record.state ~= 'R' then
      return settle_late(key, record, id, actual, size, day, deadline, context)
    end
    day, size, context = record.day, record.size, record.rest
  end
  actual = least(actual, size)
  local of = account(day)
  give_back(of, id, size)
  post(of, actual, size, outcome, id, context)
  put_mark(key, 'S', day, size, actual)
  return 'settled ' .. actual
end

local reply = {now, 'done'}
for n = 7, LAST_ARGUMENT, 7 do
  local sound, answer = pcall(
    settle, ARGV[n], ARGV[n + 1], ARGV[n + 2], ARGV[n + 3], ARGV[n + 4], ARGV[n + 5], ARGV[n + 6])
  reply[#reply + 1] = sound and answer or failed(answer)
end
save()
return reply
