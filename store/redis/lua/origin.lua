-- origin says whether a scope was looked through since its store became another one,
-- and with '1' records that it was.
--
-- KEYS  1 lease
-- ARGV  1 '1': record, 2 with 1: the epoch of the lease under which it was looked through ('': not known); nothing is
--       recorded when it is another one by now
-- returns  {'ok', '1' | '0', epoch of the scope, epoch of its lease} {'newer', format}
local lease = KEYS[1]
local f = newer(lease)
if f then return {'newer', f} end
local l = redis.call('HMGET', lease, 'epoch', 'lease_epoch')
if ARGV[1] == '1' and l[2] and l[2] == epoch() and ((ARGV[2] or '') == '' or ARGV[2] == l[2]) then
  redis.call('HSET', lease, 'epoch', l[2])
  l[1] = l[2]
end
local native = '1'
if l[1] ~= l[2] then native = '0' end
return {'ok', native, l[1] or '', l[2] or ''}
