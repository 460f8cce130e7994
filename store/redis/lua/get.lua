-- get returns one value.
--
-- KEYS  1 lease, 2 value hash
-- ARGV  1 name
-- returns  {'ok', version, data} {'none'} {'newer', format} {'poisoned', name, why}
local f = newer(KEYS[1])
if f then return {'newer', f} end
if redis.call('HSTRLEN', KEYS[2], ARGV[1]) > MAXDATA then return {'poisoned', ARGV[1], 'it is longer than any value may be'} end
local v = redis.call('HGET', KEYS[2], ARGV[1])
if not v then return {'none'} end
local version, data = split(v)
if not version then return {'poisoned', ARGV[1], 'it is not of the form that ghostbot writes'} end
return {'ok', version, data}
