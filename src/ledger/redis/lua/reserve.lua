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
local of = account(today)

local function reserve(id, asked, not_after, context, by)
  local key, size = base .. 'id:' .. id, asked + 0
  local grant = size > CREDIT and whole(CREDIT) or asked
  local record = 'R ' .. today .. ' ' .. asked .. ' ' .. grant .. ' ' .. deadline .. ' ' .. context
  -- Almost always the id is new and admitted: writing it tells, and saves asking first.
  local before = redis.call('SET', key, record, 'PX', KEEP_MS, 'NX', 'GET')
  if before or by ~= '' or now > not_after + 0 or of.used + of.reserved + size > bound then
    local answer = seldom().turned_away(key, before, record, asked, not_after + 0, by)
    if answer then
      return answer
    end
  end
  redis.call('ZADD', of.due, deadline, id)
  if of.open == 0 then
    redis.call('PEXPIRE', of.due, KEEP_MS)
  end
  if of.listed == 0 then
    seldom().list_day(of)
  end
  of.reserved, of.open, of.allowance, of.changed = of.reserved + size, of.open + 1, allowance, true
  return reserved(grant, today, deadline)
end

local reply = {now, 'done'}
for n = 7, LAST_ARGUMENT, 5 do
  local sound, answer = pcall(reserve, ARGV[n], ARGV[n + 1], ARGV[n + 2], ARGV[n + 3], ARGV[n + 4])
  reply[#reply + 1] = sound and answer or failed(answer)
end
save()
return reply
