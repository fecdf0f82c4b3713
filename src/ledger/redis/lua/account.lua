-- Shared: accounts, and where a project's books lie. Sums and lines are written together, so they agree.
--   base..day..':account'  six numbers, `>I8I8I8I8I8I8` of struct (reserved, open, used, counted, lines, refused);
--                          then 1 if the day is on the list of days, else 0; then, if it is on the list, 0
--                          if no override of the allowance is stored; then what the latest reservation
--                          was judged by: bytes, 'unlimited', or '-' if there was none
--   base..day..':lines'    the audit, a list: `at charged size outcome count id subject`
--   base..day..':rolled'   the index in that list of each rolled-up line, by its name
--   base..day..':due'      ids of the open leases by deadline, and '' by `inf`, that is, never
--   base..'days'           the days that have had leases
-- A subject is `[channel,key]<tab>[trial,artifact,request]` for a read, with the id of the link fourth
-- if it was by one; its first half for a rolled-up line, an object for an adjustment.
-- An account is read once in a script, and saved at its end. It is binary because numbers in a text
-- would cost more to read and write than all else that is done with them; a text is taken for numbers that are
-- too large, and so for nonsense; `reserve.lua` and `settle.lua`
-- change those that a read changes where they lie.
local NUMBERS = '>I8I8I8I8I8I8'
local accounts = {}

local function account(day)
  local of = accounts[day]
  if of then
    return of
  end
  local start = base .. day
  local key = start .. ':account'
  local stored = redis.call('GET', key)
  local text = stored or string.rep('\0', 48) .. '00-'
  local numbers, tail = {struct.unpack(NUMBERS, text)}, string.sub(text, 49)
  for n = 1, 6 do
    if numbers[n] > MAX then
      tail = ''
    end
  end
  local listed, overridden, allowance = string.match(tail, '^([01])([01])(%S+)$')
  if not listed then
    error('what is stored is no account')
  end
  of = {
    day = day, start = start, key = key, due = start .. ':due', list = start .. ':lines', stored = stored, changed = false,
    reserved = numbers[1], open = numbers[2], used = numbers[3], counted = numbers[4], lines = numbers[5], refused = numbers[6],
    listed = listed, overridden = overridden, allowance = allowance,
  }
  accounts[day] = of
  return of
end

-- Saves the accounts that were `changed`.
local function save()
  for _, of in pairs(accounts) do
    if of.changed then
      local text = struct.pack(NUMBERS, of.reserved, of.open, of.used, of.counted, of.lines, of.refused) .. of.listed .. of.overridden .. of.allowance
      if of.stored then
        redis.call('SET', of.key, text, 'KEEPTTL')
      else
        redis.call('SET', of.key, text, 'PX', KEEP_MS)
      end
      of.stored, of.changed = text, false
    end
  end
end
