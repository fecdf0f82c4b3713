-- Asks for numbered files in turn: the address names them without their numbers.
local FILES, requests, last = 5000, {}, 0

function init()
  for number = 1, FILES do
    requests[number] = wrk.format(nil, (wrk.path:gsub("many", "many-" .. number)))
  end
end

function request()
  last = last % FILES + 1
  return requests[last]
end
