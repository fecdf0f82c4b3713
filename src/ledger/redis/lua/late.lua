-- Shared: what becomes of a settle that is not simply charged, within `seldom_settles` of settle.lua.

-- The record that lay where the mark of a settled read was written, put back where it was; an error if it
-- is none.
local function put_back(key, before)
  local sound, record = pcall(understood, before)
  if not sound or record then
    local known_for = sound and record.state ~= 'R' and whole(record.moment - now + 1000) or KEEP_MS
    redis.call('SET', key, before, 'PX', known_for)
  else
    redis.call('DEL', key)
  end
  if not sound then
    error(record)
  end
  return record
end

local function mark_settled(key, day, size, charged, unreserved)
  put_mark(key, 'S', day, whole(size), whole(charged))
  return 'settled ' .. whole(charged) .. (unreserved or '')
end

-- The answer to a call that found `before`: nil if nobody has looked.
local function settle(key, before, id, day, size, actual, expected, outcome, context)
  if type(before) == 'table' then
    error(before)
  end
  local record
  if before then
    record = put_back(key, before)
  elseif before == nil then
    record = known(key)
  end
  local state = record and record.state
  if state == 'S' then
    return 'settled ' .. record.amount
  elseif state == 'R' or state == 'E' then
    local of, charged = account(record.day), math.min(actual, record.size + 0)
    local unreserved
    if state == 'R' then
      give_back(of, id, record.size)
      post(of, whole(charged), record.size, outcome, id, record.rest)
    else
      local difference = charged - record.amount
      unreserved = difference > 0 and ' unreserved'
      post(of, whole(difference), record.size, unreserved and 'unreserved' or 'corrected', id, context, true)
    end
    return mark_settled(key, record.day, record.size, charged, unreserved)
  end
  local charged = math.min(actual, size)
  if charged == 0 then
    return mark_settled(key, today, size, 0)
  end
  local deadline = string.match(expected, '^R %S* +(%d+)')
  if now > deadline + UNRESERVED_MS or day < first_kept or day > tomorrow then
    return 'late'
  end
  post(account(day), whole(charged), whole(size), 'unreserved', id, context)
  return mark_settled(key, day, size, charged, ' unreserved')
end

local function set_sums(of, reserved, open, used, counted, lines)
  of.reserved, of.open, of.used, of.counted, of.lines = reserved, open, used, counted, lines
end

return {
  -- Puts back what ended, where a list turned out to be something else.
  undo = function(all, records, lines, pushed)
    for n, record in ipairs(records) do
      redis.call('SET', base .. 'id:' .. all[n + 1], record, 'PX', KEEP_MS)
      redis.pcall('ZADD', all[1], string.match(record, '^R %S+ (%d+)'), all[n + 1])
    end
    if lines > 0 and type(pushed) == 'number' and pushed > 0 then
      redis.call('LTRIM', base .. today .. ':lines', '0', whole(-1 - lines))
    end
  end,
  -- As `settle`, where today's account has these sums; answers them, too. A call that breaks has an answer.
  settle = function(sums, ...)
    local of = account(today)
    set_sums(of, unpack(sums))
    local sound, answer = pcall(settle, ...)
    if not sound then
      answer = failed(answer)
    end
    return answer, of.reserved, of.open, of.used, of.counted, of.lines
  end,
  -- Saves the accounts, today's with these sums.
  close = function(...)
    local of = account(today)
    set_sums(of, ...)
    of.changed = of.changed or of.stored
    save()
  end,
}
