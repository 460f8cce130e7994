-- acquire takes the lease of a scope.
--
-- KEYS  1 lease
-- ARGV  1 owner, 2 µs, 3 epoch that the caller has waited out ('': none)
-- returns  {'ok', fence, expires} {'held', µs left} {'newer', format}
--          {'epoch', replication id}: the store is another one since the last lease, or
--          is the same with a past that may be missing; the caller waits one lease time by its own clock
--
-- A fence is larger than every earlier one. Under another replication id the last ones may
-- have been lost, so that it jumps: beyond what anybody could have taken in a lost second.
local lease = KEYS[1]
local f = newer(lease)
if f then return {'newer', f} end
local now, e = clock(), epoch()
local l = redis.call('HMGET', lease, 'fence', 'owner', 'expires', 'lease_epoch', 'epoch')
local fence = tonumber(l[1] or '0')
if l[4] and l[4] ~= e then
  if ARGV[3] ~= e then return {'epoch', e} end
  fence = math.max(fence + 1048576, math.floor(now / 1000))
else
  if l[2] and l[2] ~= ARGV[1] and (tonumber(l[3]) or 0) > now then return {'held', int(tonumber(l[3]) - now)} end
  fence = fence + 1
end
local expires = now + tonumber(ARGV[2])
redis.call('HSET', lease, 'format', FORMAT, 'fence', int(fence), 'owner', ARGV[1], 'expires', int(expires), 'lease_epoch', e)
redis.call('HSETNX', lease, 'epoch', e)
return {'ok', int(fence), int(expires)}
