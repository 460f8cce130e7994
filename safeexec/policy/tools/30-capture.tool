# Reading packet captures. Live capture and payload are never SAFE.

tool tcpdump
  safe    packets of a capture file, headers only
  -r --read-file        capture
  -c                    int(1..100000)
  -s --snapshot-length  int(0..262144)
  -T                    enum(aodv|carp|cnfp|domain|lmp|pgm|pgm_zmtp1|ptp|radius|resp|rpc|rtcp|rtp|snmp|someip|tftp|vat|vxlan|wb|zmtp1|quic)
  -n -N -v -q -t -e -S -l -p -K -O -f -D -h -H -L -# -d
  --number --count --list-interfaces --version --help --absolute-tcp-sequence-numbers --dont-verify-checksums --no-optimize --lengths --skip-count-summary
  no -A -x -X : prints payload, which may hold credentials
  no -w : writes a file
  no -z -Z : starts a program or changes the user
  no -i --interface : captures live traffic
  no -F -V : reads a file
  no -E -M : uses a key
  no -G -C -W : is for live capture
  check one-of-capture
  args filter*

tool tshark
  safe    packets of a capture file: summaries, header fields, statistics without payload
  -r --read-file        capture
  -c                    int(1..100000)
  -Y --display-filter -R --read-filter filter
  -T                    enum(fields|text|tabs|ps|psml|json|ek|pdml)
  -e                    field
  -E                    re((header|bom)=[yn]|separator=(/[ts]|.)|occurrence=[fla]|aggregator=(,|/s|.)|quote=[dsn]|escape=[yn])
  -t                    re(a|ad|adoy|d|dd|e|r|u|ud|udoy|a?\.[0-9]|r\.[0-9])
  -u                    enum(s|hms)
  -z                    tap
  -N                    re([mntdv]{1,5})
  -d                    re([a-z0-9_.]{1,40}==[0-9,:-]{1,20},[a-z0-9_.-]{1,30})
  -o                    re((tcp|ip|ipv6|udp|eth|icmp|frame)\.[a-z_]{1,60}:(TRUE|FALSE|true|false|[0-9]{1,6}))
  -O                    protos
  -J -j                 protos
  -S                    re([\x20-~]{1,8})
  -M                    int(1..1000000)
  --enable-protocol --disable-protocol --enable-heuristic --disable-heuristic name
  -2 -n -q -Q -l -P -D -v -h --print --list-interfaces --version --help --color --no-duplicate-keys
  no -V -x --hexdump : a full decode includes bodies and logins
  no -w -b -F : writes a file
  no -i -p -I -a -f -s -B -y -L --interface : captures live traffic
  no -X : runs a script
  no -C : uses another configuration profile
  no -K -H : reads a file
  no -G --elastic-mapping-filter : prints long reports
  no -U --export-objects --export-tls-session-keys --capture-comment --temp-dir --log-file : writes files
  check tshark
  args filter*

tool capinfos
  safe    facts about capture files
  -t -E -c -s -d -u -a -e -y -i -z -x -H -k -A -L -T -M -R -r -N -q -Q -m -b -B -S -C -l -F -D -I -n -o -p -K -P -h -v
  args capture+

tool captype
  safe    the type of capture files
  -h -v
  args capture+
