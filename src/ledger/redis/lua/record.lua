-- Shared: what is remembered of an id, one string each: `state day size amount moment rest`.
--   R  open:    amount = grant,   moment = deadline,             rest = context
--   S  settled: amount = charged, moment = the last ms it is known
--   E  expired: amount = charged, moment = the last ms it is known
--   X  refused: amount = bound,   moment = the last ms it is known,
--      rest = `reason used reserved resets_at retry_at`
-- The record in a text, size and amount as strings; nil if its time is over.
local function understood(text)
  local state, day, size, amount, moment, rest = string.match(text, '^(%a) (%S+) (%d+) (%d+) (%d+) ()')
  moment = moment + 0
  if state ~= 'R' and now > moment then
    return nil
  end
  return {state = state, day = day, size = size, amount = amount, moment = moment, rest = string.sub(text, rest)}
end

local function known(key)
  local text = redis.call('GET', key)
  return text and understood(text)
end

-- All of it strings.
local function put(key, state, day, size, amount, moment, rest, lives_ms)
  local text = state .. ' ' .. day .. ' ' .. size .. ' ' .. amount .. ' ' .. moment .. ' ' .. rest
  redis.call('SET', key, text, 'PX', lives_ms)
end
