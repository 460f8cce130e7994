-- now is the store's clock.
--
-- KEYS  1 lease, of any scope: it names the node
-- returns  {'ok', µs}
return {'ok', int(clock())}
