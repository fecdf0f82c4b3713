-- Shared: what is remembered of an id, one string each: `state day moment size amount rest`.
--   R  open:    moment = deadline,                amount = grant,   rest = context
--   S  settled: moment = when it ended,           amount = charged
--   E  expired: moment = when it ended,           amount = charged
--   X  refused: moment = the last ms it is known, amount = bound,
--      rest = `reason used reserved resets_at retry_at`
-- The record in a text, size and amount as strings, the moment of an ended one the last ms it is known; nil if
-- its time is over.
local function understood(text)
  local state, day, moment, size, amount, rest = string.match(text, '^([RSEX]) (%S+) (%d+) (%d+) (%d+) (.*)$')
  if not state then
    error('what is stored is no record')
  end
  moment = moment + ((state == 'S' or state == 'E') and TOMBSTONE_MS or 0)
  if state ~= 'R' and now > moment then
    return nil
  end
  return {state = state, day = day, size = size, amount = amount, moment = moment, rest = rest}
end

local function known(key)
  local text = redis.call('GET', key)
  return text and understood(text)
end

-- All of it strings.
local function put(key, state, day, moment, size, amount, rest, lives_ms)
  local text = state .. ' ' .. day .. ' ' .. moment .. ' ' .. size .. ' ' .. amount .. ' ' .. rest
  redis.call('SET', key, text, 'PX', lives_ms)
end
