-- Reserves bytes of today's allowance. A known id answers its present state.
--   KEYS 1 the id's record
--   ARGV 1-6 today.lua; 7 id; 8 size; 9 not_after; 10 context; 11 the link's id, or ''
--   {now, 'reserved', grant, day, deadline, allowance, used, reserved}   the last two of today
--   {now, 'refused', size, bound, reason, used, reserved, resets_at, retry_at or '-'}
--   {now, 'settled'}  {now, 'expired'}
--   {now, 'again'}    more leases are due than one call sweeps: repeat
--   {now, 'stale'}    executed after not_after: nothing is stored
--   {now, 'link_revoked'}    or expired, or never recorded: nothing is stored
local function reserved(grant, day, deadline, allowance, of)
  return {now, 'reserved', grant, day, deadline, allowance, of.used, of.reserved}
end

local function refused(size, bound, rest)
  local reply = {now, 'refused', size, bound}
  for word in string.gmatch(rest, '%S+') do
    reply[#reply + 1] = word
  end
  return reply
end

local record = known(KEYS[1])
if record then
  if record.state == 'R' then
    return reserved(record.amount, record.day, record.moment, allowed(), account(today))
  elseif record.state == 'X' then
    return refused(record.size, record.amount, record.rest)
  end
  return {now, record.state == 'S' and 'settled' or 'expired'}
end

local id, size, not_after, context = ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10]
if now > not_after then
  return {now, 'stale'}
end
if ARGV[11] ~= '' then
  local by = link(ARGV[11])
  if not by or by.revoked or by.over then
    return {now, 'link_revoked'}
  end
end

local allowance = allowed()
local bound = allowance == 'unlimited' and MAX or math.min(tonumber(allowance), MAX)
local of = account(today)

-- Turns the call away, counts it, and remembers it until the last copy of the call is stale. A size
-- that no account holds can never be admitted: nothing needs to be remembered.
local function refuse()
  local reason, retry_at = 'busy', nil
  if size > bound then
    reason, retry_at = 'too_large', '-'
  elseif of.used + size > bound then
    reason, retry_at = 'spent', resets_at
  else
    local earliest = redis.call('ZRANGE', base .. today .. ':due', 0, 0, 'WITHSCORES')
    retry_at = whole(math.min(tonumber(earliest[2]) or math.huge, now + 60000))
  end
  local rest = string.format('%s %d %d %s %s', reason, of.used, of.reserved, resets_at, retry_at)
  if size <= MAX then
    of.refused, of.allowance = of.refused + 1, allowance
    save(of)
    put(KEYS[1], 'X', today, size, bound, not_after, rest, whole(math.min(not_after - now + 1000, tonumber(KEEP_MS))))
  end
  return refused(ARGV[8], bound, rest)
end

if size > bound then
  return refuse()
end
if of.used + of.reserved + size > bound then
  local more = sweep(of, SWEEP_IN_RESERVE)
  if of.used + of.reserved + size > bound then
    if more then
      return {now, 'again'}
    end
    return refuse()
  end
end

local grant, deadline = math.min(size, CREDIT), now + LEASE_MS
take(of, id, size, deadline)
of.allowance = allowance
save(of)
put(KEYS[1], 'R', today, size, grant, deadline, context, KEEP_MS)
return reserved(grant, today, deadline, allowance, of)
