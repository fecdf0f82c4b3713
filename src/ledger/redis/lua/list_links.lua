-- Links that are neither revoked nor expired, by id.
--   KEYS 1, ARGV 1 today.lua; 2 only ids above this one, or ''; 3 at most so many
--   {now, 'links', id, expires, key, trial and artifact as JSON, id, ...}
--   {now, 'again'}    more links are over than one call takes off the list: repeat
if prune_links() then
  return {now, 'again'}
end
local reply = {now, 'links'}
local above = ARGV[2] == '' and '-' or '(' .. ARGV[2]
for _, id in ipairs(redis.call('ZRANGEBYLEX', LIST, above, '+', 'LIMIT', 0, ARGV[3])) do
  local known = link(id)
  if known then
    reply[#reply + 1] = id
    reply[#reply + 1] = known.expires
    reply[#reply + 1] = known.rest
  end
end
return reply
