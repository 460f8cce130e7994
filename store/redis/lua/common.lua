-- common.lua stands before every script.
--
-- Keys of one scope S share the hash tag {S}, so that a script runs on one node
-- of a cluster. With the prefix P = gb1:NAMESPACE:{S}: they are
--
--   P lease   hash    format, owner, fence, expires (µs), ttl (µs), seq, lease_epoch, epoch, people
--   P tails   hash    journal -> hash of its last line; '#' -> number of the last line
--   P lines   stream  id N-0; fields j (journal), p (prev), h (hash), d (line)
--   P segs    set     first segments of the names that hold something
--   P v:SEG   hash    name -> "VERSION DATA", for the names that begin with SEG
--   P w       channel published to when people wrote (a hint)
--
-- seq counts versions. lease_epoch is the replication id under which the lease was
-- taken, epoch the one under which the scope was last looked through, or 'gone': somebody deleted the lease. people counts the
-- commits without a fence: a holder learns with each renewal whether somebody wrote.
--
-- Every script returns a list whose first element says what happened: 'ok',
-- 'newer' (second: the format, of a later version of the program), or a word of its
-- own.

local FORMAT = 1
local MAXDATA = 67108864 + 1024

local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

local function epoch()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end

local function int(x) return string.format('%.0f', x) end

-- counts reports whether a stored number can be counted on: what Redis itself would increase, below
-- 2^53. nil is 0.
local function counts(s)
  return not s or s == '0' or (#s <= 15 and string.match(s, '^[1-9]%d*$') ~= nil)
end

-- newer reports the format of a scope that this program must not touch: of a later version, or of nobody.
local function newer(lease)
  local f = redis.call('HGET', lease, 'format')
  if f and (tonumber(f) or FORMAT + 1) > FORMAT then return string.sub(f, 1, 32) end
  return nil
end

-- split takes a stored value apart: version and data, or nil for what no script wrote.
local function split(v)
  local at = string.find(v, ' ', 1, true)
  if not at or at < 2 or at > 64 then return nil end
  return string.sub(v, 1, at - 1), string.sub(v, at + 1)
end
