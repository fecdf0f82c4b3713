-- Reserves bytes of today's allowance, for one call after the other. A known id answers its present
-- state.
--   KEYS 1 what all keys of the project begin with
--   ARGV 1-6 today.lua; then for each call five: id; size; not_after; context; the link's id, or ''
--   {now, 'done', answer of the first, answer of the second, ...}   each a text:
--      reserved grant day deadline allowance used reserved     the last two of today
--      refused size bound reason used reserved resets_at retry_at-or-'-'
--      settled
--      expired
--      again             more leases are due than one script sweeps: repeat
--      stale             executed after not_after: nothing is stored
--      link_revoked      or expired, or never recorded: nothing is stored
--      failed why        this call could not be executed
local allowance = allowed()
local bound = allowance == 'unlimited' and MAX or math.min(tonumber(allowance), MAX)
local deadline = whole(now + LEASE_MS)
local unswept = SWEEP_IN_RESERVE

local function reserved(grant, day, until_when, of)
  return 'reserved ' .. grant .. ' ' .. day .. ' ' .. until_when .. ' ' .. allowance .. ' ' .. whole(of.used)
    .. ' ' .. whole(of.reserved)
end

local function present(record)
  if record.state == 'R' then
    return reserved(record.amount, record.day, whole(record.moment), account(today))
  elseif record.state == 'X' then
    return 'refused ' .. record.size .. ' ' .. record.amount .. ' ' .. record.rest
  end
  return record.state == 'S' and 'settled' or 'expired'
end

-- Turns the call away, counts it, and remembers it until the last copy of the call is stale. A size
-- that no account holds can never be admitted: nothing needs to be remembered.
local function refuse(of, key, asked, not_after)
  local size = tonumber(asked)
  local reason, retry_at = 'busy', nil
  if size > bound then
    reason, retry_at = 'too_large', '-'
  elseif of.used + size > bound then
    reason, retry_at = 'spent', resets_at
  else
    local earliest = redis.call('ZRANGE', of.start .. ':due', 0, 0, 'WITHSCORES')
    retry_at = whole(math.min(tonumber(earliest[2]) or math.huge, now + 60000))
  end
  local rest = string.format('%s %d %d %s %s', reason, of.used, of.reserved, resets_at, retry_at)
  if size <= MAX then
    local lives_ms = whole(math.min(not_after - now + 1000, tonumber(KEEP_MS)))
    put(key, 'X', today, asked, whole(bound), whole(not_after), rest, lives_ms)
    of.refused, of.allowance, of.changed = of.refused + 1, allowance, true
  else
    redis.call('DEL', key)
  end
  return 'refused ' .. asked .. ' ' .. whole(bound) .. ' ' .. rest
end

-- Why a call goes no further that is neither admitted nor refused.
local function turned_away(of, size, not_after, by)
  if now > not_after then
    return 'stale'
  end
  if by ~= '' then
    local _, link = seldom()
    local found = link(by)
    if not found or found.revoked or found.over then
      return 'link_revoked'
    end
  end
  if size <= bound and of.used + of.reserved + size > bound then
    local sweep = seldom()
    local more, count = sweep(of, unswept)
    unswept = unswept - count
    if more and of.used + of.reserved + size > bound then
      return 'again'
    end
  end
end

local function reserve(id, asked, not_after, context, by)
  local key, size = base .. 'id:' .. id, tonumber(asked)
  local grant = size > CREDIT and whole(CREDIT) or asked
  local record = 'R ' .. today .. ' ' .. asked .. ' ' .. grant .. ' ' .. deadline .. ' ' .. context
  -- Almost always the id is new and admitted: writing it tells, and saves asking first.
  local before = redis.call('SET', key, record, 'PX', KEEP_MS, 'NX', 'GET')
  if before then
    before = understood(before)
    if before then
      return present(before)
    end
    redis.call('SET', key, record, 'PX', KEEP_MS)
  end
  local of = account(today)
  not_after = tonumber(not_after)
  local why = turned_away(of, size, not_after, by)
  if why then
    redis.call('DEL', key)
    return why
  end
  if of.used + of.reserved + size > bound then
    return refuse(of, key, asked, not_after)
  end
  take(of, id, size, deadline)
  of.allowance = allowance
  return reserved(grant, today, deadline, of)
end

local reply = {now, 'done'}
for n = 7, LAST_ARGUMENT, 5 do
  local sound, answer = pcall(reserve, ARGV[n], ARGV[n + 1], ARGV[n + 2], ARGV[n + 3], ARGV[n + 4])
  reply[#reply + 1] = sound and answer or failed(answer)
end
save()
return reply
