-- commit applies guards, writes and lines, all or none.
--
-- KEYS  1 lease, 2 tails, 3 lines, 4 segs, 5... the value hashes of the segments used
-- ARGV  1 fence (0: not fenced), 2 nonce (ends the new versions), 3 channel ('': no hint),
--       4 number of deadlines, 5 of guards, 6 of writes, 7 of lines; then
--       each deadline: µs
--       each guard:    index in KEYS, name, version ('': must not exist)
--       each write:    index in KEYS, segment, name, '1' with data or '0' (delete), data
--       each line:     journal, n, prev, hash, data
-- returns  {'ok', version}  version '' when the commit had been applied before
--          {'fence'} {'late'} {'moved'} {'guard', index of the guard, 'changed' | 'exists'}
--          {'newer', format} {'poisoned', name, why}
local lease, tails, lines, segs = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local f = newer(lease)
if f then return {'newer', f} end

local now = clock()
if ARGV[1] ~= '0' then
  local l = redis.call('HMGET', lease, 'fence', 'owner', 'expires', 'lease_epoch')
  if l[1] ~= ARGV[1] or not l[2] or (tonumber(l[3]) or 0) <= now or l[4] ~= epoch() then return {'fence'} end
end

local at = 8
for i = 1, tonumber(ARGV[4]) do
  if now >= tonumber(ARGV[at]) then return {'late'} end
  at = at + 1
end
local guards = at
local writes = guards + 3 * tonumber(ARGV[5])
local ls = writes + 5 * tonumber(ARGV[6])

-- Which lines are new, and do they follow?
local fresh, follows = {}, true
local tail = {}
local last = redis.call('HGET', tails, '#') or '0'
if not counts(last) then return {'poisoned', 'tails', 'the number of its last line is none'} end
last = tonumber(last)
for i = 0, tonumber(ARGV[7]) - 1 do
  local a = ls + 5 * i
  local j, n, prev, hash, data = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
  local there = false
  if tonumber(n) <= last then
    local e = redis.call('XRANGE', lines, n .. '-0', n .. '-0')[1]
    if e then
      local x = e[2]
      there = x[2] == j and x[6] == hash and x[8] == data
    end
  end
  if not there then
    if tail[j] == nil then tail[j] = redis.call('HGET', tails, j) or '' end
    local ok = tonumber(n) > last
    if tail[j] == '' then ok = ok and string.match(prev, '^0*$') ~= nil else ok = ok and prev == tail[j] end
    if not ok then
      follows = false
      break
    end
    tail[j], last = hash, tonumber(n)
    fresh[#fresh + 1] = a
  end
end

local function held(key, name)
  local v = redis.call('HGET', key, name)
  if not v then return nil end
  return split(v)
end

-- A commit that was applied before: its lines are there, its writes are what is held.
if follows and tonumber(ARGV[7]) > 0 and #fresh == 0 then
  local applied = true
  for i = 0, tonumber(ARGV[6]) - 1 do
    local a = writes + 5 * i
    local v, data = held(KEYS[tonumber(ARGV[a])], ARGV[a + 2])
    if ARGV[a + 3] == '1' then applied = applied and v ~= nil and data == ARGV[a + 4] else applied = applied and v == nil end
  end
  if applied then return {'ok', ''} end
end

for i = 0, tonumber(ARGV[5]) - 1 do
  local a = guards + 3 * i
  local v = held(KEYS[tonumber(ARGV[a])], ARGV[a + 1]) or ''
  if v ~= ARGV[a + 2] then
    if ARGV[a + 2] == '' then return {'guard', tostring(i), 'exists'} end
    return {'guard', tostring(i), 'changed'}
  end
end
if not follows then return {'moved'} end
if tonumber(ARGV[6]) == 0 and #fresh == 0 then return {'ok', ''} end

-- Nothing above has written. From here on nothing can fail half way: wrong types are
-- met here; a full memory, and a stream that goes on with a larger number, by the first write.
redis.call('SCARD', segs)
redis.call('XLEN', lines)
for i = 5, #KEYS do redis.call('HLEN', KEYS[i]) end
for _, name in ipairs({'seq', 'people'}) do
  if not counts(redis.call('HGET', lease, name) or nil) then return {'poisoned', name, 'it is no number that can be increased'} end
end
local gone = redis.call('EXISTS', lease) == 0 and redis.call('EXISTS', tails) == 1 -- somebody deleted it, see acquire.lua
for _, a in ipairs(fresh) do
  redis.call('XADD', lines, ARGV[a + 1] .. '-0', 'j', ARGV[a], 'p', ARGV[a + 2], 'h', ARGV[a + 3], 'd', ARGV[a + 4])
  redis.call('HSET', tails, ARGV[a], ARGV[a + 3], '#', ARGV[a + 1])
end
local seq = redis.call('HINCRBY', lease, 'seq', 1)
if gone then redis.call('HSET', lease, 'epoch', 'gone') end
if ARGV[1] == '0' then redis.call('HINCRBY', lease, 'people', 1) end
redis.call('HSETNX', lease, 'format', FORMAT)
local version = tostring(seq) .. '-' .. ARGV[2]
for i = 0, tonumber(ARGV[6]) - 1 do
  local a = writes + 5 * i
  local key = KEYS[tonumber(ARGV[a])]
  if ARGV[a + 3] == '1' then
    redis.call('HSET', key, ARGV[a + 2], version .. ' ' .. ARGV[a + 4])
    redis.call('SADD', segs, ARGV[a + 1])
  else
    redis.call('HDEL', key, ARGV[a + 2])
    if redis.call('EXISTS', key) == 0 then redis.call('SREM', segs, ARGV[a + 1]) end
  end
end
if ARGV[3] ~= '' then redis.call('PUBLISH', ARGV[3], '') end
return {'ok', version}
