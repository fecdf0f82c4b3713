-- Shared: makes calls of one or several projects, by `calls_of`.
--   KEYS 1, ARGV 1 today.lua; ARGV 1 goes on with the calls of that project
--   KEYS n, ARGV n   what all keys of the nth project begin with, and its calls
--   One string if there is one project; else a list of strings, in place of one a list of why the project's
--   calls could not be executed.
if LAST_ARGUMENT == 1 then
  return calls_of(now, base, today, resets_at, ARGV[1], 47)
end
local answers = {}
for n = 1, LAST_ARGUMENT do
  local sound, answer = pcall(calls_of, now, KEYS[n], today, resets_at, ARGV[n], n == 1 and 47 or 1)
  if not sound or type(answer) == 'table' then
    answer = {tostring(type(answer) == 'table' and answer.err or answer)}
  end
  answers[n] = answer
end
return answers
