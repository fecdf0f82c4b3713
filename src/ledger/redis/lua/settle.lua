-- Ends reservations, one call after the other: charges what was handed out, at most the reserved size.
--   KEYS 1, ARGV 1 today.lua; ARGV 1 goes on with the calls, each `>c36c10I8I8I8Bc0I4c0I4c0`: id; day of the
--        admission, or blanks; what it is charged if it is the open lease that the caller takes it for; size;
--        actual; what is remembered of it then, `size charged `; its record, `R day deadline size grant context`;
--        what its line has after the time, ` charged size outcome 1 id context`
--   One string. `>I8`: now. Each call was charged as it is said there, but for those that are named after
--   that, in their order, each `>BI4c0`: its number, from 0; '' if it was charged so, or
--      settled charged
--      settled charged unreserved    charged for the first time, beyond any reservation
--      late              unknown, and too old to be believed: nothing changed
--      failed why        this call could not be executed
-- What almost every call needs is written out here, with as few commands, texts, tables and functions as can
-- be, for each costs. `seldom` makes what the other calls need, `roll_up` adds to lines where the day has many.
local calls, at, number = ARGV[1], 47, 0
local written, list = string.format('%d', now), base .. today .. ':lines'
local key = base .. today .. ':account'
local stored = redis.call('GET', key)
local reserved, open, used, counted, lines = 0, 0, 0, 0, 0
if stored then
  reserved, open, used, counted, lines = struct.unpack('>I8I8I8I8I8', stored)
  if reserved > MAX or open > MAX or used > MAX or counted > MAX or lines > MAX then
    error('what is stored is no account')
  end
end
-- Of the first lease that ended: its id, record and line; of all if there are more, as commands take them. And
-- what is rolled up, by outcome and head: outcome, head, charged, size, count.
local first, ended, line, all, records, texts, rolled
local answers, others = '', nil

while at <= #calls do
  local id, day, charged, size, actual, marked, record, text
  id, day, charged, size, actual, marked, record, text, at = struct.unpack('>c36c10I8I8I8Bc0I4c0I4c0', calls, at)
  -- Almost always it is the open lease that the caller takes it for: to write what it ends as tells, and
  -- saves asking first.
  local name, before, answer = base .. 'id:' .. id, nil, nil
  if day == today and size <= reserved and open >= 1 and used + charged <= MAX then
    before = redis.pcall('SET', name, 'S ' .. today .. ' ' .. written .. ' ' .. marked, 'PX', MARK_LIVES_MS, 'XX', 'GET')
  end
  if before == record then
    if not first then
      first, ended = id, record
    elseif not all then
      all, records = {base .. today .. ':due', first, id}, {ended, record}
    else
      local n = #records + 1
      all[n + 1], records[n] = id, record
    end
    if lines < MAX_ENTRIES then
      lines, text = lines + 1, written .. text
      if not line then
        line = text
      elseif not texts then
        texts = {list, line, text}
      else
        texts[#texts + 1] = text
      end
    else
      local outcome, by = string.match(text, '(%a+) 1 %S+ ([^\t]*)')
      local name = outcome .. by
      rolled = rolled or {}
      local sums = rolled[name] or {outcome, by, 0, 0, 0}
      rolled[name], sums[3], sums[4], sums[5] = sums, sums[3] + charged, sums[4] + size, sums[5] + 1
    end
    reserved, open, used, counted = reserved - size, open - 1, used + charged, counted + 1
  else
    others = others or seldom(now, base, today)
    answer, reserved, open, used, counted, lines = others.settle(
      {reserved, open, used, counted, lines}, name, before, id, day, size, actual, record, text)
  end
  if others then
    answers = answers .. struct.pack('>BI4c0', number, #(answer or ''), answer or '')
  end
  number = number + 1
end

if first then
  local removed = all and redis.pcall('ZREM', unpack(all)) or redis.pcall('ZREM', base .. today .. ':due', first)
  local pushed, made = 0, 0
  if line and type(removed) == 'number' then
    pushed = texts and redis.pcall('RPUSH', unpack(texts)) or redis.pcall('RPUSH', list, line)
  end
  local broken = type(removed) == 'table' and removed or type(pushed) == 'table' and pushed
  if rolled and not broken then
    made = roll_up(now, base .. today, rolled)
    broken = type(made) == 'table' and made
  end
  if broken then
    (others or seldom(now, base, today)).undo(
      all or {base .. today .. ':due', first}, records or {ended}, texts and #texts - 1 or line and 1 or 0, pushed)
    return broken
  end
  if line then
    if pushed == (texts and #texts - 1 or 1) then
      redis.call('PEXPIRE', list, KEEP_MS)
    end
    lines = pushed
  end
  lines = lines + made
  if not others then
    redis.call('SETRANGE', key, '0', struct.pack('>I8I8I8I8I8', reserved, open, used, counted, lines))
  end
end
if others then
  others.close(reserved, open, used, counted, lines)
end
local answer = struct.pack('>I8', now)
return others and answer .. answers or answer
