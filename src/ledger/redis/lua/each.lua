-- Makes calls, those of one project and kind after the other. A script for one kind has nothing of the other.
--   KEYS 1, ARGV 1 today.lua; ARGV 1 goes on with the kind of the first calls, and those calls
--   KEYS n, ARGV n   what all keys of a project begin with; a kind, `R` or `S`, and its calls: reserve.lua, settle.lua
--   What is answered to the calls of ARGV 1 if that is all; else a list of such answers, in place of one a
--   list of why its calls could not be executed.
local answers
for n = 1, LAST_ARGUMENT do
  local calls, at = ARGV[n], n == 1 and 47 or 1
  local of = string.byte(calls, at) == 82 and reserves_of or settles_of
  if LAST_ARGUMENT == 1 then
    return of(now, base, today, resets_at, calls, 48)
  end
  local sound, answer = pcall(of, now, KEYS[n], today, resets_at, calls, at + 1)
  if not sound or type(answer) == 'table' then
    answer = {tostring(type(answer) == 'table' and answer.err or answer)}
  end
  answers = answers or {}
  answers[n] = answer
end
return answers
