-- Shared: numbers in texts. Amounts and times are decimal strings, and stay strings where nothing is
-- reckoned with them: to turn a number into text costs as much as some commands. A Lua number becomes one
-- by %d alone: tostring() and .. would round it to 14 digits. Arithmetic takes such strings, comparisons
-- do not; `+ 0` makes a number of one at half the cost of tonumber().
local function whole(number)
  return string.format('%d', number)
end
