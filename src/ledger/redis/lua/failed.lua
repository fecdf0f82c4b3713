-- Shared: the answer of a call that broke, so that the others of the script get theirs.
local function failed(why)
  return 'failed ' .. tostring(type(why) == 'table' and why.err or why)
end
