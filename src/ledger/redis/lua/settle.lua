-- Ends reservations, one call after the other: charges what was handed out, at most the reserved size.
--   KEYS 1, ARGV 1 today.lua; ARGV 1 goes on with the calls, each `>c36c10I8I8I8Bc0Bc0Bc0I4c0`: id; day of the
--        admission, or blanks; what it is charged if it is the open lease that the caller takes it for; size;
--        actual; what is remembered of it then, `size charged `; how its record begins, `R day deadline size grant `;
--        what its line has before the subject, ` charged size outcome 1 id `; context
--   One string. `>I8`: now. Each call was charged as it is said there, but for those that are named after
--   that, in their order, each `>BI4c0`: its number, from 0; '' if it was charged so, or
--      settled charged
--      settled charged unreserved    charged for the first time, beyond any reservation
--      late              unknown, and too old to be believed: nothing changed
--      failed why        this call could not be executed
-- What almost every call needs is written out here, with as few commands, texts, tables and functions as can
-- be, for each costs. `seldom` makes what the other calls need.
local calls, at, number = ARGV[1], 47, 0
local ids, due, list = base .. 'id:', base .. today .. ':due', base .. today .. ':lines'
local written, mark = string.format('%d', now), 'S ' .. today .. string.format(' %d ', now + TOMBSTONE_MS)
local key = base .. today .. ':account'
local stored = redis.call('GET', key)
local reserved, open, used, counted, lines = 0, 0, 0, 0, 0
if stored then
  reserved, open, used, counted, lines = struct.unpack('>I8I8I8I8I8', stored)
  if reserved > MAX or open > MAX or used > MAX or counted > MAX or lines > MAX then
    error('what is stored is no account')
  end
end
-- Of the first lease that ended: its id, record and line; and those of all, if there are more.
local first, record, line, all, records, texts
local answers, others = '', nil

while at <= #calls do
  local id, day, charged, size, actual, marked, head, text, length
  id, day, charged, size, actual, marked, head, text, length, at = struct.unpack('>c36c10I8I8I8Bc0Bc0Bc0I4', calls, at)
  -- Almost always it is the open lease that the caller takes it for: to write what it ends as tells, and
  -- saves asking first.
  local before, answer = nil, nil
  if day == today and size <= reserved and open >= 1 and lines < MAX_ENTRIES and used + charged <= MAX then
    before = redis.pcall('SET', ids .. id, mark .. marked, 'PX', MARK_LIVES_MS, 'XX', 'GET')
  end
  if type(before) == 'string' and string.sub(before, 1, #head) == head then
    text = written .. text .. string.sub(before, #head + 1)
    if not first then
      first, record, line = id, before, text
    elseif not all then
      all, records, texts = {due, first, id}, {record, before}, {list, line, text}
    else
      local n = #all + 1
      all[n], records[n - 1], texts[n] = id, before, text
    end
    reserved, open, used, counted, lines = reserved - size, open - 1, used + charged, counted + 1, lines + 1
  else
    others = others or seldom(now, base, today)
    answer, reserved, open, used, counted, lines = others.settle(
      {reserved, open, used, counted, lines}, ids .. id, before, id, day, size, actual, head, text, string.sub(calls, at, at + length - 1))
  end
  if others then
    answers = answers .. struct.pack('>BI4c0', number, #(answer or ''), answer or '')
  end
  at, number = at + length, number + 1
end

if first then
  local pushed = all and redis.pcall('RPUSH', unpack(texts)) or redis.pcall('RPUSH', list, line)
  local removed = pushed
  if type(pushed) == 'number' then
    removed = all and redis.pcall('ZREM', unpack(all)) or redis.pcall('ZREM', due, first)
  end
  if type(removed) == 'table' then
    -- There is no such list: nothing is settled.
    all, records = all or {due, first}, records or {record}
    for n = 1, #records do
      redis.call('SET', ids .. all[n + 1], records[n], 'PX', KEEP_MS)
    end
    if pushed ~= removed then
      redis.call('LTRIM', list, '0', string.format('%d', -1 - #records))
    end
    return removed
  end
  if pushed == (all and #records or 1) then
    redis.call('PEXPIRE', list, KEEP_MS)
  end
  lines = pushed
  if not others then
    redis.call('SETRANGE', key, '0', struct.pack('>I8I8I8I8I8', reserved, open, used, counted, lines))
  end
end
if others then
  others.close(reserved, open, used, counted, lines)
end
return struct.pack('>I8', now) .. answers
