-- Shared: what becomes of a call that is not simply admitted, within `seldom_reserves` of reserve.lua.
local unswept = SWEEP_IN_RESERVE

local function present(record)
  if record.state == 'R' then
    return 'reserved ' .. record.amount .. ' ' .. record.day .. ' ' .. whole(record.moment)
  elseif record.state == 'X' then
    return 'refused ' .. record.size .. ' ' .. record.amount .. ' ' .. record.rest
  end
  return record.state == 'S' and 'settled' or 'expired'
end

-- Turns the call away, counts it, and remembers it until the last copy of the call is stale. A size
-- that no account holds can never be admitted: nothing needs to be remembered. `pending` is the deadline of
-- leases made before in this script, which are not on the list yet.
local function refuse(of, key, asked, size, not_after, pending)
  local reason, retry_at = 'busy', nil
  if size > bound then
    reason, retry_at = 'too_large', '-'
  elseif of.used + size > bound then
    reason, retry_at = 'spent', whole(resets_at)
  else
    local earliest = redis.call('ZRANGEBYSCORE', of.due, '-inf', '(inf', 'WITHSCORES', 'LIMIT', 0, 1)
    retry_at = whole(math.min(tonumber(earliest[2]) or math.huge, pending or math.huge, now + 60000))
  end
  local rest = string.format('%s %d %d %d %s', reason, of.used, of.reserved, resets_at, retry_at)
  if size <= MAX then
    local lives_ms = whole(math.min(not_after - now + 1000, tonumber(KEEP_MS)))
    put(key, 'X', today, whole(not_after), asked, whole(bound), rest, lives_ms)
    of.refused, of.allowance, of.changed = of.refused + 1, allowance, true
  else
    redis.call('DEL', key)
  end
  return 'refused ' .. asked .. ' ' .. whole(bound) .. ' ' .. rest
end

-- The answer to a call whose record was written where `before` was; none if it is admitted after all.
local function turned_away(of, key, before, record, size, not_after, by, pending)
  if before then
    if type(before) == 'table' then
      error(before)
    end
    before = understood(before)
    if before then
      return present(before)
    end
    redis.call('SET', key, record, 'PX', KEEP_MS)
  end
  local answer
  if now > not_after then
    answer = 'stale'
  elseif by ~= '' then
    local found = link(by)
    answer = (not found or found.revoked or found.over) and 'link_revoked'
  end
  if not answer and size <= bound and of.used + of.reserved + size > bound then
    local more, count = sweep(of, unswept)
    unswept = unswept - count
    answer = more and of.used + of.reserved + size > bound and 'again'
  end
  if answer then
    redis.call('DEL', key)
  elseif of.used + of.reserved + size > bound then
    answer = refuse(of, key, string.match(record, '^R %S+ %d+ (%d+)'), size, not_after, pending)
  end
  return answer
end

return {
  -- As `turned_away`, for an account with these sums; answers them, too. A call that breaks has an answer.
  judge = function(reserved, open, used, ...)
    local of = account(today)
    of.reserved, of.open, of.used = reserved, open, used
    local sound, answer = pcall(turned_away, of, ...)
    if not sound then
      answer = failed(answer)
    end
    return answer or nil, of.reserved, of.open, of.used
  end,
  -- Saves the account with these sums, and puts the day on its list if it is not there.
  close = function(reserved, open, used, admitted, overridden)
    local of = account(today)
    of.reserved, of.open, of.used = reserved, open, used
    if admitted then
      of.allowance, of.overridden, of.changed = allowance, overridden, true
    end
    save()
    if admitted and of.listed == '0' then
      list_day(of)
      save()
    end
  end,
}
