-- Shared: accounts, and where a project's books lie. `charge.lua`, `reserve.lua` and `refusal.lua` are the only
-- code that changes them; sums and lines are written together, so they agree.
--   base..day..':account'  seven numbers, `>ddddddd` of struct (used, reserved, open, refused, lines, counted,
--                          listed), and what the latest reservation was judged by: bytes, 'unlimited', or '-'
--                          if there was none
--   base..day..':lines'    the audit, a list: `at charged size outcome count id subject`
--   base..day..':rolled'   the index in that list of each rolled-up line, by its name
--   base..day..':due'      ids of the open leases by deadline
--   base..'days'           the days that have had leases, where the account is `listed` (1, else 0)
-- A subject is `[channel,key]<tab>[trial,artifact,request]` for a read, with the id of the link fourth
-- if it was by one; its first half for a rolled-up line, an object for an adjustment.
-- An account is read once in a script, and saved at its end. It is binary because numbers in a text
-- would cost more to read and write than all else that is done with them.
local NUMBERS = '>ddddddd'
local accounts = {}

local function account(day)
  local of = accounts[day]
  if of then
    return of
  end
  local start = base .. day
  local key = start .. ':account'
  local stored = redis.call('GET', key)
  local text = stored or string.rep('\0', 56) .. '-'
  local used, reserved, open, refused, lines, counted, listed = struct.unpack(NUMBERS, text)
  -- A table is made at once: each further field that it had no place for would make it anew.
  local allowance = string.sub(text, 57)
  of = {
    day = day, start = start, key = key, due = start .. ':due', list = start .. ':lines', stored = stored and allowance, changed = false, used = used,
    reserved = reserved, open = open, refused = refused, lines = lines, counted = counted, listed = listed,
    allowance = allowance,
  }
  accounts[day] = of
  return of
end

-- Saves the accounts that were `changed`.
local function save()
  for _, of in pairs(accounts) do
    if of.changed then
      local text = struct.pack(NUMBERS, of.used, of.reserved, of.open, of.refused, of.lines, of.counted, of.listed)
      if of.stored == of.allowance then
        redis.call('SETRANGE', of.key, '0', text)
      elseif of.stored then
        redis.call('SET', of.key, text .. of.allowance, 'KEEPTTL')
      else
        redis.call('SET', of.key, text .. of.allowance, 'PX', KEEP_MS)
      end
      of.stored, of.changed = of.allowance, false
    end
  end
end
