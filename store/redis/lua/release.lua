-- release gives a lease up. The fence stays.
--
-- KEYS  1 lease
-- ARGV  1 owner, 2 fence
-- returns  {'ok'} {'fence'} {'newer', format}
local lease = KEYS[1]
local f = newer(lease)
if f then return {'newer', f} end
local l = redis.call('HMGET', lease, 'owner', 'fence', 'expires', 'lease_epoch')
if l[1] ~= ARGV[1] or l[2] ~= ARGV[2] or (tonumber(l[3]) or 0) <= clock() or l[4] ~= epoch() then return {'fence'} end
redis.call('HDEL', lease, 'owner', 'expires')
return {'ok'}
