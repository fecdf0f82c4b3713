-- Shared: what every admission of this script is judged by, and its answer.
local allowance = allowed()
local bound = allowance == 'unlimited' and MAX or math.min(allowance + 0, MAX)
local deadline = whole(now + LEASE_MS)
local unswept = SWEEP_IN_RESERVE

local function reserved(grant, day, until_when)
  local of = account(today)
  return 'reserved ' .. grant .. ' ' .. day .. ' ' .. until_when .. ' ' .. allowance .. ' ' .. whole(of.used)
    .. ' ' .. whole(of.reserved)
end
