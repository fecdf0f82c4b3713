-- Shared: signed links, kept until they expire.
--   base..'link:'..id      `expires revoked [key,trial,artifact]`, revoked being 0 or 1
--   base..'links'          ids of the links that are neither revoked nor pruned, for reading in their order
--   base..'links:expiry'   the same ids by the last moment of each
-- The moment decides whether a link is over, not the end of its key: that comes a minute later.
local LIST, EXPIRY = base .. 'links', base .. 'links:expiry'

local function link(id)
  local text = redis.call('GET', base .. 'link:' .. id)
  if not text then
    return nil
  end
  local expires, revoked, rest = string.match(text, '^(%d+) ([01]) (.*)$')
  return {expires = expires, revoked = revoked == '1', over = tonumber(expires) < now, rest = rest}
end

local function put_link(id, expires, revoked, rest)
  -- At most a century, which is as good as none.
  local lives_ms = math.min(tonumber(expires) - now + 60000, 3155760000000)
  redis.call('SET', base .. 'link:' .. id, expires .. ' ' .. revoked .. ' ' .. rest, 'PX', whole(lives_ms))
  return lives_ms
end

local function delist(ids)
  for _, id in ipairs(ids) do
    redis.call('ZREM', LIST, id)
    redis.call('ZREM', EXPIRY, id)
  end
end

-- Takes links off the lists whose time is over, at most a batch; answers whether more are left.
local function prune_links()
  local over = redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', '(' .. whole(now), 'LIMIT', 0, SWEEP_BATCH + 1)
  local more = #over > SWEEP_BATCH
  if more then
    over[#over] = nil
  end
  delist(over)
  return more
end
