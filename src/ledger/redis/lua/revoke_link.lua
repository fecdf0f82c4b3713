-- Revokes a link. It stays recorded until it expires, so that a late copy of the call that recorded
-- it does not bring it back.
--   KEYS 1, ARGV 1 today.lua; 2 id
--   {now, 'revoked'}    now or before
--   {now, 'unknown'}    never recorded, or expired
local id = ARGV[2]
local known = link(id)
if not known or known.over then
  return {now, 'unknown'}
end
if not known.revoked then
  put_link(id, known.expires, 1, known.rest)
  delist({id})
end
return {now, 'revoked'}
