-- Links that are neither revoked nor expired, by id.
--   KEYS 1 the list of links
--   ARGV 1-6 today.lua; 7 only ids above this one, or ''; 8 at most so many
--   {now, 'links', id, expires, key, trial and artifact as JSON, id, ...}
--   {now, 'again'}    more links are over than one call takes off the list: repeat
if prune_links() then
  return {now, 'again'}
end
local reply = {now, 'links'}
local above = ARGV[7] == '' and '-' or '(' .. ARGV[7]
for _, id in ipairs(redis.call('ZRANGEBYLEX', KEYS[1], above, '+', 'LIMIT', 0, ARGV[8])) do
  local known = link(id)
  if known then
    reply[#reply + 1] = id
    reply[#reply + 1] = known.expires
    reply[#reply + 1] = known.rest
  end
end
return reply
