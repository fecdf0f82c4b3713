-- In place of clock.lua where a test steps the clock: the time is the last argument.
local now = tonumber(ARGV[#ARGV])
