-- Asks for so many numbered files in turn: the address names them without their numbers.
local requests, last = {}, 0

function init(arguments)
  for number = 1, tonumber(arguments[1]) do
    requests[number] = wrk.format(nil, (wrk.path:gsub("many", "many-" .. number)))
  end
end

function request()
  last = last % #requests + 1
  return requests[last]
end
