-- renew extends a lease that is still held.
--
-- KEYS  1 lease
-- ARGV  1 owner, 2 fence, 3 µs
-- returns  {'ok', expires, commits of people so far} {'fence'} {'newer', format}
local lease = KEYS[1]
local f = newer(lease)
if f then return {'newer', f} end
local now = clock()
local l = redis.call('HMGET', lease, 'owner', 'fence', 'expires', 'lease_epoch', 'people')
if l[1] ~= ARGV[1] or l[2] ~= ARGV[2] or (tonumber(l[3]) or 0) <= now or l[4] ~= epoch() then return {'fence'} end
local expires = now + tonumber(ARGV[3])
redis.call('HSET', lease, 'expires', int(expires), 'ttl', ARGV[3])
return {'ok', int(expires), l[5] or '0'}
