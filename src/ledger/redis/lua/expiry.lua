-- Shared: expiry. A due lease is charged its grant, the most that can have gone out.
local function expire(of, id)
  local key = base .. 'id:' .. id
  local record = known(key)
  if not record or record.state ~= 'R' then
    -- Only a lost record leaves its index entry behind; without it the entry would be due for ever.
    redis.call('ZREM', of.due, id)
    return
  end
  give_back(of, id, record.size)
  post(of, record.amount, record.size, 'expired', id, record.rest)
  put_mark(key, 'E', of.day, record.size, record.amount)
end

-- Expires at most `limit` due leases of the account's day, and saves the account if there were any;
-- answers whether more are due, and how many it expired.
local function sweep(of, limit)
  local due = redis.call('ZRANGEBYSCORE', of.due, '-inf', whole(now), 'LIMIT', 0, limit + 1)
  local count = math.min(#due, limit)
  for n = 1, count do
    expire(of, due[n])
  end
  save()
  return #due > limit, count
end
