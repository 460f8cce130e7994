# Probes: programs that send a bounded number of packets to one place.

tool ping ping6
  safe    a bounded number of echo requests to one host
  -c --count            int(1..100)
  -w --deadline         sec(1..120)
  -i --interval         sec(0.2..60)
  -W --timeout --linger sec(0..60)
  -s --size             int(0..65507)
  -t --ttl              int(1..255)
  -M --pmtudisc         enum(do|dont|want|probe)
  -I --interface        host
  -Q --tos              hex
  -F                    hex
  -m --mark             number
  -e                    number
  -l                    int(1..3)
  -p --pattern          re([0-9a-fA-F]{1,2})
  -T                    enum(tsonly|tsandaddr)
  -4 -6 -n -q -v -D -O -a -B -L -U -R -r -H -h -V -d
  --numeric --quiet --verbose
  no -f : flood mode is a load test, not a probe
  no -A : adaptive mode sends as fast as answers come back
  no -b : a broadcast makes every host answer
  need -c -w -h -V : never ends without a count; add -c 4
  check duration
  args unicast?

tool traceroute traceroute6
  safe    the path to one host, with a bounded number of probes
  -f --first            int(1..64)
  -m --max-hops         int(1..64)
  -q --queries          int(1..10)
  -N --sim-queries      int(1..64)
  -w --wait             re([0-9]{1,2}(\.[0-9]+)?(,[0-9]{1,2}(\.[0-9]+)?){0,2})
  -z --sendwait         re([0-2](\.[0-9]{1,3})?|1[1-9]|[2-9][0-9]|[1-9][0-9]{2})
  -p --port             int(1..65535)
  -t --tos              hex
  -l --flowlabel        hex
  -i --interface        iface
  -s --source           ip
  -M --module           enum(default|icmp|tcp|tcpconn|udp|udplite|dccp|raw)
  --sport               int(1..65535)
  --fwmark              number
  -4 -6 -d -F -I -T -U -UL -D -n -r -e -A -V
  --icmp --tcp --udp --udplite --dccp --dont-fragment --extensions --as-path-lookups --mtu --back --version --help --debug
  no -g --gateway : source routing sends packets through other hosts
  args unicast? int(28..9000)?

tool tcptraceroute
  safe    the path to one port of one host, with a bounded number of probes
  -f                    int(1..64)
  -m                    int(1..64)
  -q                    int(1..10)
  -w                    sec(1..10)
  -i                    iface
  -p                    int(1..65535)
  -s                    ip
  -n -N -S -A -E -F -v
  args host port?

tool tracepath tracepath6
  safe    the path and its MTU to one host
  -l                    int(28..65535)
  -m                    int(1..64)
  -p                    int(1..65535)
  -4 -6 -n -b -V
  args hopto port?

tool mtr
  safe    a report with a bounded number of cycles
  -c --report-cycles    int(1..100)
  -i --interval         sec(0.2..60)
  -f --first-ttl        int(1..64)
  -m --max-ttl          int(1..64)
  -U --max-unknown      int(1..64)
  -P --port             int(1..65535)
  -L --localport        int(1..65535)
  -s --psize            int(28..9000)
  -B --bitpattern       int(-1..255)
  -G --gracetime        sec(0..30)
  -Z --timeout          sec(0..60)
  -Q --tos              hex
  -M --mark             number
  -I --interface        iface
  -a --address          ip
  -o --order            re([A-Z\x20]{1,20})
  -y --ipinfo           int(0..4)
  -r --report -w --report-wide -j --json -x --xml -C --csv -l --raw
  -4 -6 -u --udp -T --tcp -S --sctp -e --mpls -n --no-dns -b --show-ips -z --aslookup -h --help -v --version
  no -F --filename : reads its targets from a file
  no -t --curses -p --split -g --gtk : an interactive screen never ends by itself
  need -r --report -w --report-wide -j --json -x --xml -C --csv -h --help -v --version : is an interactive screen; add --report
  check duration
  with -l -c : has no end in raw mode without -c
  with --raw -c : has no end in raw mode without -c
  args unicast? int(28..9000)?

tool fping fping6
  safe    a bounded number of echo requests to a few hosts
  -c --count            int(1..50)
  -C --vcount           int(1..50)
  -r --retry            int(0..10)
  -t --timeout          int(1..10000)
  -p --period           int(200..2000)
  -i --interval         int(10..10000)
  -b --size             int(0..65507)
  -H --ttl              int(1..255)
  -I --iface            iface
  -S --src              ip
  -O --tos              hex
  -B --backoff          sec(1..5)
  -4 -6 -a --alive -u --unreach -A --addr -d --rdns -n --name -D --timestamp -e --elapsed -q --quiet -s --stats -v --version -M --dontfrag
  no -l --loop : loops for ever
  no -f --file : reads its targets from a file
  no -g --generate : a range of addresses is a scan
  args unicast unicast? unicast? unicast? unicast? unicast? unicast? unicast?

tool arping
  safe    a bounded number of ARP requests for one address
  -c                    int(1..50)
  -w                    sec(1..60)
  -I                    iface
  -i                    iface
  -W                    sec(0.2..10)
  -D -q -f -r -v -V -0
  no -U -A -P -s -S -b : announces or claims an address
  need -c -w -V : never ends without a count; add -c 3
  args ip

tool nc ncat netcat
  safe    does a port of one host answer (-z); up to four ports
  -w --wait             sec(1..60)
  -i                    sec(1..10)
  -G                    sec(1..60)
  -s --source           ip
  -p --source-port      int(1..65535)
  -z -v -n -u -4 -6 -h --version
  --verbose --udp --nodns
  no -l --listen -k : opens a listener
  no -e -c --exec --sh-exec --lua-exec : starts a program
  no -x --proxy : sends the connection through another host
  need -z -h --version : waits for input; add -z to only test the port
  args host? ncport? ncport? ncport? ncport?

tool redis-cli valkey-cli
  style words
  safe    does a server answer, and its figures; nothing that it stores
  -h                    server
  -p                    int(1..65535)
  -t                    sec(1..60)
  -4 -6 --tls --raw --no-raw --version -v --help
  no -a --pass --user --askpass -u --cert --key : uses a credential
  no -s : talks to a local service
  no -x -X -e --eval --pipe --rdb --functions-rdb : sends or copies data
  no -r -i --stat --latency --latency-history --latency-dist --lru-test --intrinsic-latency --replica --slave --bigkeys --memkeys --hotkeys --scan --cluster -c : asks again and again, or for what is stored
  bare
  check version-or-verb
  sub ping PING
  sub info INFO
    args enum(server|clients|memory|persistence|stats|replication|cpu|commandstats|latencystats|errorstats|sentinel|cluster|keyspace|default)?

tool dig
  safe    DNS questions, no zone transfer, no file
  -4 -6 -i -m -r -u -v -h
  -b                    re([0-9a-fA-F.:]{2,45}(#[0-9]{1,5})?)
  -c                    enum(IN|in|CH|ch|HS|hs|ANY|any)
  -p                    int(1..65535)
  -q                    dnsname
  -t                    rrtype
  -x                    re([0-9a-fA-F.:]{1,60})
  no -f : reads a file and sends its lines to a resolver
  no -k -y : uses a key
  +aaflag +aaonly +additional +adflag +ad +all +answer +authority +badcookie +besteffort +cdflag +cd +class +cl +cmd +comments +cookie +crypto +defname
  +dns64prefix +dnssec +do +edns +ednsflags +ednsnegotiation +expandaaaa +expire +fail +header-only +https +https-get +identify +ignore +keepalive
  +keepopen +mapped +multiline +multi +nsid +nssearch +nosplit +onesoa +qr +question +raflag +rdflag +recurse +rec +rrcomments +search +short
  +showallmessages +showbadcookie +showsearch +stats +svcparamkeycompat +tcflag +tcp +tls +trace +ttlid +ttlunits +unknownformat +vc +yaml +zflag +idnin +idnout
  +coflag +zoneversion +showbadvers
  +noaaflag +noaaonly +noadditional +noadflag +noall +noanswer +noauthority +nobadcookie +nobesteffort +nocdflag +noclass +nocl +nocmd +nocomments
  +nocookie +nocrypto +nodnssec +nodo +noedns +noednsnegotiation +noexpire +nofail +nohttps +noidentify +noignore +nokeepalive +nokeepopen +nomapped
  +nomultiline +nonsid +nonssearch +noonesoa +noqr +noquestion +noraflag +nordflag +norecurse +norec +norrcomments +nosearch +noshort +noshowsearch
  +nostats +notcflag +notcp +notls +notrace +nottlid +nottlunits +nounknownformat +novc +noyaml +nozflag +noidnin +noidnout +nosubnet +nopadding
  +edns                 int(0..255)?
  +bufsize              int(0..65535)=
  +domain               host=
  +ndots                int(0..20)=
  +padding              int(0..512)=
  +qid                  int(0..65535)=
  +retry                int(0..10)=
  +tries                int(1..10)=
  +time                 int(1..30)=
  +timeout              int(1..30)=
  +split                int(0..100)=
  +subnet               re([0-9a-fA-F.:]{1,40}(/[0-9]{1,3})?)=
  +tls-ca               castore=
  +tls-hostname         host=
  +https                re(/[a-z-]{1,30})?
  no +trusted-key +tls-certfile +tls-keyfile +topdown +sigchase : reads a file
  no +opcode +ednsopt : sends something other than a question
  no +http-plain +http-plain-get +proxy +proxy-plain : sends the question through another protocol or host
  args digword*

tool delv
  safe    validated DNS questions, no file
  -4 -6 -i -m -r -h -v
  -b                    re([0-9a-fA-F.:]{2,45}(#[0-9]{1,5})?)
  -c                    enum(IN|in|CH|ch|HS|hs)
  -p                    int(1..65535)
  -q                    dnsname
  -t                    rrtype
  -x                    re([0-9a-fA-F.:]{1,60})
  no -a : reads a file
  +cdflag +cl +class +comments +crypto +dlv +dnssec +mtrace +multiline +rrcomments +rtrace +short +split +tcp +trust +ttl +unknownformat +vtrace +yaml +all +root
  +noall +nocl +noclass +nocomments +nocrypto +nodlv +nodnssec +nomultiline +norrcomments +noshort +notrust +nottl +noyaml +nocdflag +noroot
  args digword*

tool kdig
  safe    DNS questions, no zone transfer, no file
  -4 -6 -d -h -V
  -b                    ip
  -c                    enum(IN|in|CH|ch)
  -p                    int(1..65535)
  -q                    dnsname
  -t                    rrtype
  -x                    re([0-9a-fA-F.:]{1,60})
  no -k -y : uses a key
  no -E -G : writes or reads a file
  +short +tcp +tls +https +quic +dnssec +nsid +multiline +noall +answer +stats +header +norec +rec +rdflag +nordflag +cdflag +adflag +edns +noedns +all +question +authority
  +additional +comments +tls-host +nocrypto +crypto +ignore +keepopen +cookie +nocookie +json
  +time                 int(1..30)=
  +retry                int(0..10)=
  +bufsize              int(0..65535)=
  +subnet               re([0-9a-fA-F.:]{1,40}(/[0-9]{1,3})?)=
  +tls-hostname         host=
  +tls-sni              host=
  args digword*

tool drill
  safe    DNS questions, no zone transfer, no file
  -4 -6 -D -S -T -V -a -u -t -s -h -v
  -b                    int(512..65535)
  -p                    int(1..65535)
  -o                    re([A-Za-z,]{1,40})
  -x                    re([0-9a-fA-F.:]{1,60})
  no -f -i -w -q -k -y -c -d -r : reads or writes a file, or uses a key
  args digword*

tool nslookup
  style dash
  safe    DNS questions; one name is needed
  -type -ty -typ -querytype -query -q -qt  rrtype
  -class -cl            enum(IN|in|CH|ch|HS|hs|ANY|any|chaos|CHAOS|hesiod)
  -port -po             int(1..65535)
  -timeout -ti          int(1..30)
  -retry -ret           int(0..10)
  -domain -do           host
  -ndots                int(0..20)
  -debug -nodebug -d2 -nod2 -deb -recurse -norecurse -rec -norec -vc -novc -search -nosearch -defname -nodefname -ignoretc -noignoretc -fail -nofail
  -sil -all -version
  args nsname host?

tool host
  safe    DNS questions, no zone transfer
  -4 -6 -a -C -d -i -r -s -T -U -v -V -n
  -c                    enum(IN|in|CH|ch|HS|hs)
  -N                    int(0..20)
  -p                    int(1..65535)
  -R                    int(1..10)
  -t                    rrtype
  -W                    int(1..30)
  -m                    enum(trace|record|usage)
  no -l -A : list mode is a zone transfer
  no -w : waits for an answer for ever
  args dnsname host?

tool whois
  safe    registry look-ups of names, addresses, prefixes and AS numbers
  -h --host             re((whois\.[a-z0-9][a-z0-9.-]{1,60}|rr\.[a-z0-9.-]{1,60}|v4\.whois\.cymru\.com|[a-z0-9-]{1,30}\.whois-servers\.net|rpki\.gin\.ntt\.net|irrd\.[a-z0-9.-]{1,60}))
  -H -I -a -b -B -c -d -G -K -l -L -m -M -r -R -x --verbose --version --help
  -i                    re([a-z,-]{2,60})
  -s                    re([A-Z0-9,-]{2,60})
  -T                    re([a-z0-9,-]{2,60})
  no -p --port : another port is no registry; anything could be sent there
  args whoisflag? whois whois? whois?

tool resolvectl
  safe    shows the resolver and resolves names
  bare
  -4 -6 -l --no-pager --no-legend --legend --status --statistics
  -i --interface        iface
  -p --protocol         enum(dns|llmnr|llmnr-ipv4|llmnr-ipv6|mdns|mdns-ipv4|mdns-ipv6)
  -t --type             rrtype
  -c --class            enum(IN|CH|ANY)
  --cache --synthesize --search --cname --validate --zone --network --trust-anchor enum(yes|no|true|false)=
  --json                enum(short|pretty|off)
  sub status
    args iface*
  sub query
    args dnsname dnsname? dnsname? dnsname?
  sub statistics
  sub show-cache
  sub show-server-state
  sub dns
    args iface?
  sub domain
    args iface?
  sub default-route
    args iface?
  sub llmnr
    args iface?
  sub mdns
    args iface?
  sub dnssec
    args iface?
  sub dnsovertls
    args iface?
  sub nta
    args iface?
  deny flush-caches reset-statistics reset-server-features revert log-level : changes the resolver
  deny monitor : follows for ever

tool systemd-resolve
  safe    shows the resolver and resolves names
  -4 -6 -l --no-pager --legend --status --statistics --version --help
  -i --interface        iface
  -p --protocol         enum(dns|llmnr|llmnr-ipv4|llmnr-ipv6|mdns|mdns-ipv4|mdns-ipv6)
  -t --type             rrtype
  -c --class            enum(IN|CH|ANY)
  args dnsname?

tool rpcinfo
  safe    registered RPC services of one host
  -p -s -m
  args host?

tool showmount
  safe    exported file systems of one host
  -a -d -e --all --directories --exports --no-headers
  args host?

tool getent
  safe    host, service, protocol and network look-ups
  -s --service          re([a-z0-9:_,-]{1,40})
  -i --no-idn
  sub hosts
    args name*
  sub ahosts ahostsv4 ahostsv6
    args name*
  sub services protocols networks rpc ethers netgroup
    args name*
  deny shadow gshadow passwd group initgroups : prints accounts

tool tcping
  safe    a bounded number of connections to one port
  -n -c --count         int(1..50)
  -w -t                 sec(0.1..10)
  -i                    sec(0.2..60)
  need -n -c --count : never ends without a count
  check duration
  args host port

tool httping
  safe    a bounded number of HEAD requests
  -c --count            int(1..50)
  -i --interval         sec(0.2..60)
  -t --timeout          sec(1..60)
  -g --url              url
  -p --port             int(1..65535)
  -s -G -S -b -l -q -Y -4 -6
  need -c --count : never ends without a count; add -c 4
  check duration
  args url?
