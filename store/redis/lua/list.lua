-- list returns the values of one hash whose names begin with a prefix.
--
-- KEYS  1 lease, 2 value hash
-- ARGV  1 prefix
-- returns  {'ok', name, version, data, name, version, data, ...} {'newer', format}
--          version '': somebody else wrote the value, and data says what is wrong with it; the others
--          are as they were
local f = newer(KEYS[1])
if f then return {'newer', f} end
local out = {'ok'}
local names = redis.call('HKEYS', KEYS[2])
for i = 1, #names do
  local name = names[i]
  if string.sub(name, 1, #ARGV[1]) == ARGV[1] then
    local version, data = '', 'it is longer than any value may be'
    if redis.call('HSTRLEN', KEYS[2], name) <= MAXDATA then
      version, data = split(redis.call('HGET', KEYS[2], name))
      if not version then version, data = '', 'it is not of the form that ghostbot writes' end
    end
    out[#out + 1] = name
    out[#out + 1] = version
    out[#out + 1] = data
  end
end
return out
