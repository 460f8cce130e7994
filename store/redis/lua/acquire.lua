-- acquire takes the lease of a scope.
--
-- KEYS  1 lease, 2 tails
-- ARGV  1 owner, 2 µs, 3 epoch that the caller has waited out ('': none), 4 the largest fence that
--       the caller knows of, 5 when the lease expires that the caller has and the store knows nothing of
--       ('': it has none), 6 'again': the scope had a lease, so that having none means it was deleted ('': not known),
--       also where a person's commit made the key anew since, which has no fence then, 7 with 5: the fence of that lease
-- returns  {'ok', fence, expires, commits of people so far, the fence before, of
--          this epoch, or 0} {'held', µs left} {'newer', format}
--          {'epoch', replication id}: the store is another one since the last lease, or
--          is the same with a past that may be missing; the caller waits one lease time by its own clock
--          {'epoch', 'gone'}: the scope has lines, or had a lease, and has no lease, which somebody deleted; the same wait
--          {'fence'}: with 5, when there is a lease, or was one since that one expired; not when it is the one
--          that the caller got by 5 before and did not hear of
--          {'poisoned', 'fence', why}
--
-- A fence is larger than every earlier one. Under another replication id, and where there is no
-- lease, earlier ones may have been lost, a second of them or, with an old backup, a month: it jumps to the
-- clock's microseconds, which nobody who counts upwards reaches. A clock that is behind adds a jump that
-- is not the same twice. So it does where the fence is no number.
--
-- A scope whose lease was deleted, alone or with all the rest, may have lost more: its epoch is then
-- another one than that of its lease, until it was looked through. Only the holder of the lease that is gone
-- can know that everything is; whoever else finds nothing at all finds a new scope, unless they know better (6).
--
-- A lease ends one lease time from now at the latest, whatever stands there: a clock that was set back, or a
-- hand, would keep everybody from the scope for as long. Whoever holds it renewed before now, and stops by its own
-- clock before that.
local lease = KEYS[1]
local f = newer(lease)
if f then return {'newer', f} end
local now, e = clock(), epoch()
local l = redis.call('HMGET', lease, 'fence', 'owner', 'expires', 'lease_epoch', 'epoch', 'people', 'ttl')
local ttl = tonumber(l[7] or '')
if l[2] and ttl and (tonumber(l[3]) or 0) > now + ttl then
  l[3] = int(now + ttl)
  redis.call('HSET', lease, 'expires', l[3])
end
local had = tonumber(ARGV[5])
if had and (now >= had or l[1] and (l[1] == ARGV[7] or l[2] ~= ARGV[1] or l[5] ~= 'gone')) then return {'fence'} end
local gone = not l[1] and (had or l[5] == 'gone' or ARGV[6] == 'again' or redis.call('EXISTS', lease) == 0 and redis.call('EXISTS', KEYS[2]) == 1)
if gone and not had and ARGV[3] ~= 'gone' then return {'epoch', 'gone'} end
if l[1] and not tonumber(l[1]) then l[1] = false end
local fence = math.max(tonumber(l[1] or '0') or 0, tonumber(ARGV[4]))
if l[4] and l[4] ~= e and not gone then
  if ARGV[3] ~= e then return {'epoch', e} end
  if now > fence then fence = now else fence = fence + 1048576 + now % 1048576 end
else
  if l[2] and l[2] ~= ARGV[1] and (tonumber(l[3]) or 0) > now then return {'held', int(tonumber(l[3]) - now)} end
  fence = fence + 1
  if not l[1] then fence = math.max(fence, now) end
end
if fence >= 9007199254740992 then return {'poisoned', 'fence', 'it is larger than scripts can count (2^53): the next one would be the same'} end
local before = '0'
if l[1] and l[4] == e then before = l[1] end
local expires = now + tonumber(ARGV[2])
redis.call('HSET', lease, 'format', FORMAT, 'fence', int(fence), 'owner', ARGV[1], 'expires', int(expires), 'ttl', ARGV[2], 'lease_epoch', e)
if gone then redis.call('HSET', lease, 'epoch', 'gone') end
redis.call('HSETNX', lease, 'epoch', e)
return {'ok', int(fence), int(expires), l[6] or '0', before}
