-- lines returns journal lines behind a number, a page of them.
--
-- KEYS  1 lease, 2 lines
-- ARGV  1 after, 2 bytes after which a page ends
-- returns  {'ok', n, journal, prev, hash, data, n, ...}; only 'ok' at the end
--          {'newer', format} {'poisoned', id, why}
local f = newer(KEYS[1])
if f then return {'newer', f} end
local out, size, after = {'ok'}, 0, ARGV[1] .. '-18446744073709551615'
while size < tonumber(ARGV[2]) do
  local es = redis.call('XRANGE', KEYS[2], '(' .. after, '+', 'COUNT', 16)
  if #es == 0 then break end
  for i = 1, #es do
    local n, x = string.match(es[i][1], '^(%d+)%-0$'), es[i][2]
    if not n or #x ~= 8 or x[1] ~= 'j' or x[3] ~= 'p' or x[5] ~= 'h' or x[7] ~= 'd' then
      return {'poisoned', es[i][1], 'it is not a line that ghostbot wrote'}
    end
    if #x[8] > MAXDATA then return {'poisoned', es[i][1], 'it is longer than any line may be'} end
    out[#out + 1] = n
    out[#out + 1] = x[2]
    out[#out + 1] = x[4]
    out[#out + 1] = x[6]
    out[#out + 1] = x[8]
    size, after = size + #x[8] + 256, es[i][1]
    if size >= tonumber(ARGV[2]) then break end
  end
end
return out
