-- Ends reservations, one call after the other, of one or several projects: charges what was handed out, at most
-- the reserved size.
--   each.lua; each call is `>c36c10I8I8I8Bc0Bc0Bc0I4c0`: id; day of the admission, or blanks; what it is charged if
--        it is the open lease that the caller takes it for; size; actual; what is remembered of it then, `size
--        charged `; what its record begins with, `R day deadline size grant `; what its line has after the time,
--        ` charged size outcome 1 `; its context, for which the record is asked first
--   Of a project `>I8`: now. Each call was charged as it is said there, but for those that are named after
--   that, in their order, each `>BI4c0`: its number, from 0; '' if it was charged so, or
--      settled charged
--      settled charged unreserved    charged for the first time, beyond any reservation
--      late              unknown, and too old to be believed: nothing changed
--      failed why        this call could not be executed
-- What almost every call needs is written out here, with as few commands, texts, tables and functions as can
-- be, for each costs. `seldom_settles` makes what the other calls need, `roll_up` adds to lines where the day has many.
local function settles_of(now, base, today, _, calls, at)
  local number, written, list = 0, string.format('%d', now), base .. today .. ':lines'
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
    local id, day, charged, size, actual, marked, record, said, length
    id, day, charged, size, actual, marked, record, said, length, at =
      struct.unpack('>c36c10I8I8I8Bc0Bc0Bc0I4', calls, at)
    at = at + length
    -- Almost always it is the open lease that the caller takes it for: to write what it ends as tells, and
    -- saves asking first.
    local name, before, context, answer = base .. 'id:' .. id, nil, nil, nil
    if day == today and size <= reserved and open >= 1 and used + charged <= MAX then
      before = redis.pcall('SET', name, 'S ' .. today .. ' ' .. written .. ' ' .. marked, 'PX', MARK_LIVES_MS, 'XX', 'GET')
      -- To take a text apart costs less than to be told all of it.
      if before and not before.err and string.sub(before, 1, #record) == record then
        context = string.sub(before, #record + 1)
      end
    end
    if context then
      if not first then
        first, ended = id, before
      elseif not all then
        all, records = {base .. today .. ':due', first, id}, {ended, before}
      else
        local n = #records + 1
        all[n + 1], records[n] = id, before
      end
      if lines < MAX_ENTRIES then
        local text = written .. said .. id .. ' ' .. context
        lines = lines + 1
        if not line then
          line = text
        elseif not texts then
          texts = {list, line, text}
        else
          texts[#texts + 1] = text
        end
      else
        local outcome, by = string.match(said, '%a+'), string.match(context, '^[^\t]*')
        local name = outcome .. by
        rolled = rolled or {}
        local sums = rolled[name] or {outcome, by, 0, 0, 0}
        rolled[name], sums[3], sums[4], sums[5] = sums, sums[3] + charged, sums[4] + size, sums[5] + 1
      end
      reserved, open, used, counted = reserved - size, open - 1, used + charged, counted + 1
    else
      others = others or seldom_settles(now, base, today)
      answer, reserved, open, used, counted, lines = others.settle(
        {reserved, open, used, counted, lines}, name, before, id, day, size, actual, record,
        string.match(said, '%a+'), string.sub(calls, at - length, at - 1))
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
      (others or seldom_settles(now, base, today)).undo(
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
end
