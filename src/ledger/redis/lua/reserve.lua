-- Reserves bytes of today's allowance, for one call after the other, of one or several projects. A known id
-- answers its present state.
--   each.lua; each call is `>c36I8I8Bc0I4c0`: id; not_after; size; the link's id, or ''; `size grant context`
--   Of a project `>I8I8I8I8Bc0`: now; the deadline of what is admitted; used and reserved today before the first
--   call; the allowance. Each call was admitted and its size is reserved, but for those that are named
--   after that, in their order, each `>BI8I8I4c0`: its number, from 0; used and reserved after it; '' if it was
--   admitted after all, or
--      reserved grant day deadline    admitted before
--      refused size bound reason used reserved resets_at retry_at-or-'-'
--      settled
--      expired
--      again             more leases are due than one script sweeps: repeat
--      stale             executed after not_after: nothing is stored
--      link_revoked      or expired, or never recorded: nothing is stored
--      failed why        this call could not be executed
-- What almost every call needs is written out here, with as few commands, texts, tables and functions as can
-- be, for each costs. `seldom_reserves` makes what the other calls need.
local function reserves_of(now, base, today, resets_at, calls, at)
  local number, ends = 0, now + LEASE_MS
  local deadline = string.format('%d', ends)
  local key = base .. today .. ':account'
  local stored = redis.call('GET', key)
  local reserved, open, used = 0, 0, 0
  if stored then
    reserved, open, used = struct.unpack('>I8I8I8', stored)
    if reserved > MAX or open > MAX or used > MAX then
      error('what is stored is no account')
    end
  end
  -- Almost always the account says that the day is on the list, that there is no override, and what is to be said
  -- of the allowance.
  local tail = stored and string.sub(stored, 49)
  local allowance, overridden, bound, kept = ALLOWANCE, '0', BOUND, tail == PLAIN
  if not kept then
    if tail and not string.find(tail, '^[01][01]%S+$') then
      error('what is stored is no account')
    end
    allowance, overridden = allowed(now, base)
    bound = allowance == 'unlimited' and MAX or math.min(allowance + 0, MAX)
    kept = tail == '1' .. overridden .. allowance
  end
  local used_before, reserved_before, answers = used, reserved, ''
  -- The id of the first lease, and all of them as `ZADD` takes them if there are more: a table costs.
  local first, all, others

  while at <= #calls do
    local id, not_after, size, by, rest
    id, not_after, size, by, rest, at = struct.unpack('>c36I8I8Bc0I4c0', calls, at)
    -- Almost always the id is new and admitted: writing it tells, and saves asking first.
    local name, record, answer = base .. 'id:' .. id, 'R ' .. today .. ' ' .. deadline .. ' ' .. rest, nil
    local before = redis.pcall('SET', name, record, 'PX', KEEP_MS, 'NX', 'GET')
    if before or by ~= '' or now > not_after or used + reserved + size > bound then
      others = others or seldom_reserves(now, base, today, resets_at, allowance, bound)
      answer, reserved, open, used =
        others.judge(reserved, open, used, name, before, record, size, not_after, by, first and ends)
    end
    if not answer then
      if not first then
        first = id
      elseif not all then
        all = {base .. today .. ':due', deadline, first, deadline, id}
      else
        local n = #all
        all[n + 1], all[n + 2] = deadline, id
      end
      reserved, open = reserved + size, open + 1
    end
    if others then
      answers = answers .. struct.pack('>BI8I8I4c0', number, used, reserved, #(answer or ''), answer or '')
    end
    number = number + 1
  end

  if first then
    local added = all and redis.pcall('ZADD', unpack(all)) or redis.pcall('ZADD', base .. today .. ':due', deadline, first)
    if type(added) == 'table' then
      -- There is no such list: nothing is reserved.
      for n = 3, all and #all or 3, 2 do
        redis.call('DEL', base .. 'id:' .. (all and all[n] or first))
      end
      return added
    end
  end
  if others or not kept then
    others = others or seldom_reserves(now, base, today, resets_at, allowance, bound)
    others.close(reserved, open, used, first, overridden)
  else
    redis.call('SETRANGE', key, '0', struct.pack('>I8I8', reserved, open))
  end
  local answer = struct.pack('>I8I8I8I8Bc0', now, ends, used_before, reserved_before, #allowance, allowance)
  return others and answer .. answers or answer
end
