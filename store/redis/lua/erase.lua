-- erase forgets a scope, for whoever holds its lease.
--
-- KEYS  1 lease, 2 tails, 3 lines, 4 segs, 5... the value hashes of all segments
-- ARGV  1 owner, 2 fence, 3 ms that the fence stays, 4... the segments
-- returns  {'ok'} {'fence'} {'more'}: there are other segments by now {'newer', format}
--
-- The fence stays for a time, so that nobody who held the scope before can write to it.
local lease = KEYS[1]
local f = newer(lease)
if f then return {'newer', f} end
local l = redis.call('HMGET', lease, 'owner', 'fence', 'expires', 'lease_epoch')
if l[1] ~= ARGV[1] or l[2] ~= ARGV[2] or (tonumber(l[3]) or 0) <= clock() or l[4] ~= epoch() then return {'fence'} end
local known = {}
for i = 4, #ARGV do known[ARGV[i]] = true end
for _, s in ipairs(redis.call('SMEMBERS', KEYS[4])) do
  if not known[s] then return {'more'} end
end
for i = 2, #KEYS do redis.call('DEL', KEYS[i]) end
redis.call('HDEL', lease, 'owner', 'expires')
redis.call('PEXPIRE', lease, ARGV[3])
return {'ok'}
