# The machine's own view: sockets, addresses, routes, links, counters.

tool ss
  safe    sockets, listed once
  -n -r -a -l -o -e -m -p -T -i -s -b -Z -z -4 -6 -0 -t -M -S -u -d -w -x -H -O -Q -h -V -B
  --numeric --resolve --all --listening --options --extended --memory --processes --threads --info --tipcinfo --summary --tos --cgroup --bpf
  --context --contexts --ipv4 --ipv6 --packet --tcp --mptcp --sctp --udp --dccp --raw --unix --tipc --vsock --xdp --no-header --no-queues --oneline --inet-sockopt --help --version
  --bpf-maps --bound-inactive
  -N --net              re([A-Za-z0-9_][A-Za-z0-9_.-]{0,60})
  -f --family           enum(inet|inet6|link|unix|netlink|vsock|tipc|xdp|help)
  -A --query --socket   set(all|inet|tcp|mptcp|udp|raw|unix|unix_dgram|unix_stream|unix_seqpacket|packet|packet_raw|packet_dgram|netlink|dccp|sctp|vsock|vsock_stream|vsock_dgram|tipc|xdp|u_dgr|u_str|u_seq|p_raw|p_dgr|nl|ax25|v_str|v_dgr|ti_dg|ti_rd|ti_sq|ti_st|inet6)
  no -K --kill : closes sockets
  no -D --diag : writes a dump file
  no -F --filter : reads its filter from a file
  no -E --events : follows for ever
  args re([A-Za-z0-9_.:*/%\[\]()=<>!&|@,\x20'"-]{1,400})*

tool netstat
  safe    sockets, routes and counters, listed once
  -v -W -n -N -e -C -F -a -l -o -p -t -u -U -S -w -x -r -i -g -s -M -Z -4 -6 -V -h -m -b -d -R -T -L
  --verbose --wide --numeric --numeric-hosts --numeric-ports --numeric-users --symbolic --extend --cache --fib --all --listening --timers
  --programs --program --tcp --udp --udplite --sctp --raw --unix --route --interfaces --groups --statistics --masquerade --context --inet --inet6 --version --help
  -A                    enum(inet|inet6|unix|ipx|ax25|netrom|ddp|bluetooth)
  -f                    enum(inet|inet6|unix|link)
  -I                    iface
  no -c --continuous : repeats for ever
  args enum(tcp|udp|icmp|ip|ip6|icmp6|igmp|inet|inet6)?

block ip-flags
  -V -Version -s -stats -statistics -stat -d -details -det -r -resolve -h -human -human-readable -iec -j -json -p -pretty -4 -6 -B -M -0 -br -brief -o -oneline
  -t -timestamp -ts -tshort -N -Numeric -c -color -ss -c=never -c=auto -color=never -color=auto
  -f -family            enum(inet|inet6|mpls|bridge|link)
  -n -netns             re([A-Za-z0-9_][A-Za-z0-9_.-]{0,60})
  -rc -rcvbuf           number
  no -b -batch -force : runs whatever a file says
  no -a -all -l -loops : acts on every namespace

block address-filter
  word dev iface
  word scope word
  word master iface
  word type name
  word to prefix
  word label name
  word vrf iface
  word group name
  word up nomaster permanent dynamic secondary primary tentative deprecated dadfailed temporary home nodad mngtmpaddr noprefixroute
  args iface?

block route-filter
  word table name
  word vrf iface
  word proto protocol name
  word type name
  word scope name
  word dev oif iface
  word iif iface
  word via prefix
  word src prefix
  word realm realms name
  word root prefix
  word match prefix
  word exact prefix
  word to prefix
  word from prefix
  word metric number
  word tos dsfield hex
  word cached cloned
  word unicast local broadcast multicast throw unreachable prohibit blackhole nat :
  args prefix?

tool ip
  style dash
  abbrev
  safe    addresses, links, routes, neighbours and the like, shown once
  use ip-flags
  bare
  sub address
    bare
    deny add change chg replace delete : changes addresses
    sub show lst list
      use address-filter
    deny flush save restore showdump : changes or dumps addresses
  sub addrlabel
    bare
    sub list show
    deny add delete flush : changes labels
  sub maddress
    bare
    deny add delete : changes addresses
    sub show lst list
      word dev iface
      args iface?
  sub route
    bare
    sub list show lst
      use route-filter
    sub get
      word from prefix
      word to routeto
      word iif iface
      word oif iface
      word dev iface
      word tos hex
      word mark hex
      word vrf iface
      word uid number
      word ipproto name
      word sport number
      word dport number
      word fibmatch connected notify
      check route-get
      args routeto?
    deny add change chg replace prepend append test delete flush save restore showdump : changes or dumps routes
  sub rule
    bare
    sub list lst show
      word from prefix
      word to prefix
      word table lookup name
      word iif iface
      word oif dev iface
      word pref preference order priority number
      word fwmark hex
      word tos hex
      word not l3mdev
    deny add delete flush save restore : changes rules
  sub neighbor neighbour
    bare
    deny add change chg replace delete : changes neighbours
    sub get
      word dev iface
      word proxy ip
      word to ip
      args ip
    sub show lst list
      word dev iface
      word nud state name
      word to prefix
      word proxy nomaster unused
      word vrf iface
      word master iface
      word protocol name
      args prefix?
    deny flush : changes neighbours
  sub ntable ntbl
    bare
    deny change chg replace : changes settings
    sub show lst list
      word dev iface
      word name : name
  sub link
    bare
    deny add change chg replace set delete : changes links
    sub show lst list
      use address-filter
    sub xstats
      word type name
      word dev iface
      args iface?
    sub afstats
      word dev iface
    deny property help : changes links
  deny l2tp : holds cookies and changes tunnels
  sub fou
    sub show
    deny add delete : changes ports
  deny ila : changes mappings
  deny macsec : prints or changes keys
  sub tunnel tunl
    bare
    deny add change replace delete : changes tunnels
    sub show lst list
      word dev iface
      word mode name
      word remote prefix
      word local prefix
      args iface?
    deny prl 6rd : changes tunnels
  sub tuntap tap
    bare
    deny add delete : changes devices
    sub show lst list
  sub token
    bare
    sub list
      word dev iface
    deny set get delete : changes tokens
  sub tcpmetrics tcp_metrics
    bare
    deny delete flush : changes metrics
    sub show lst list
      word to prefix
      args prefix?
  deny monitor : follows for ever
  sub xfrm
    sub policy
      bare
      deny add update delete deleteall set flush count : changes policies
      sub list show lst
        word src prefix
        word dst prefix
        word dir name
        word dev iface
        word nosock
      sub get
    sub state
      deny add update allocspi delete deleteall : changes keys
      sub list show lst
        need nokeys : prints keys; add nokeys
        word nokeys
        word src prefix
        word dst prefix
        word proto name
        word spi hex
        word reqid number
      deny get flush count : prints or changes keys
    deny monitor : follows for ever
  sub mroute
    bare
    sub show lst list
      word table name
      word iif iface
      word from prefix
      word to prefix
      args prefix?
  sub mrule
    bare
    sub list lst show
    deny add delete flush save restore : changes rules
  sub netns
    bare
    sub list show lst
    deny set add attach delete : changes namespaces
    sub identify
      args number?
    sub pids
      args name
    deny exec : runs another program
    sub list-id
      word target-nsid nsid : number
    deny monitor : follows for ever
  sub netconf
    bare
    sub show lst list
      word dev iface
  sub vrf
    bare
    sub show lst list
      args iface?
    deny identify pids exec : runs another program
  deny sr : changes segment routing
  sub nexthop
    bare
    deny add replace delete flush : changes next hops
    sub list show lst
      word id number
      word dev iface
      word vrf iface
      word groups fdb
      word proto protocol name
    sub get
      word id number
    deny bucket : is not on the list
  sub mptcp
    sub endpoint
      deny add delete change flush : changes endpoints
      sub show
        word id number
    sub limits
      deny set : changes limits
      sub show
    deny monitor : follows for ever
  deny ioam : changes or prints schemas
  sub stats
    bare
    sub show
      word dev iface
      word group subgroup suite name
    deny set : changes settings
  deny help : prints help only

tool tc
  style dash
  abbrev
  bare
  check version-or-verb
  safe    queueing disciplines, classes and filters, shown once
  -V -s -stats -statistics -d -details -r -raw -o -oneline -j -json -p -pretty -N -Numeric -nm -nam -names -br -brief -iec -g -graph -t -timestamp -c -color -h -human
  -n -netns             re([A-Za-z0-9_][A-Za-z0-9_.-]{0,60})
  no -b -batch -force -cf -conf : runs or reads a file
  sub qdisc
    bare
    deny add change replace link delete : changes queues
    sub list show lst
      word dev iface
      word block name
      word handle name
      word parent name
      word root ingress clsact invisible egress
    deny help get : is not on the list
  sub class
    deny add change replace delete : changes classes
    sub list show lst
      word dev iface
      word parent classid name
      word root
    deny help get : is not on the list
  sub filter
    deny add change replace delete : changes filters
    sub show list lst
      word dev iface
      word block name
      word parent name
      word root ingress egress
      word protocol name
      word pref prio priority number
      word chain number
    deny help get : is not on the list
  sub chain
    deny add delete : changes chains
    sub show list
      word dev iface
      word block name
      word parent name
      word ingress egress root
    deny get : is not on the list
  sub actions
    deny add change replace delete flush : changes actions
    sub ls list show
      word action name
      args name?
    deny get : is not on the list
  deny monitor : follows for ever
  deny exec : runs a program

tool bridge
  style dash
  abbrev
  safe    bridge ports, forwarding entries and VLANs, shown once
  -V -s -stats -statistics -d -details -o -oneline -t -timestamp -c -compressvlans -color -p -pretty -j -json
  -n -netns             re([A-Za-z0-9_][A-Za-z0-9_.-]{0,60})
  no -b -batch -force : runs whatever a file says
  sub link
    bare
    deny set change : changes ports
    sub show lst list
      word dev iface
  sub fdb
    bare
    deny add append replace delete flush : changes entries
    sub show lst list
      word dev port brport br brdev : iface
      word vlan number
      word state name
      word dynamic
      args iface?
    sub get
      word dev brport br iface
      word vlan vni number
      word to mac
      word self master dynamic
      args mac?
  sub mdb
    bare
    deny add delete replace : changes entries
    sub show lst list
      word dev iface
      word vid number
    deny get flush : is not on the list
  sub vlan
    bare
    deny add delete set : changes VLANs
    sub show lst list
      word dev iface
      word vid number
    sub tunnelshow
      word dev iface
      word vid number
    sub global
      deny set : changes VLANs
      sub show
        word dev iface
        word vid number
  sub vni
    deny add delete : changes VNIs
    sub show lst list
      word dev iface
  deny monitor : follows for ever

tool ifconfig
  style words
  safe    interfaces, shown once
  -a -s -v -l -u -d
  deny up down add del netmask broadcast mtu hw promisc -promisc arp allmulti multicast metric txqueuelen : changes the interface
  args iface?

tool arp
  safe    the neighbour table
  -n -a -v -e -h -V --numeric --all --verbose --version --help -l
  -i --device           iface
  -H -A -t --hw-type --protocol  enum(ether|arcnet|pronet|netrom|ax25|inet)
  no -d --delete -s --set -S -f --file : changes the table
  no -D --use-device : is only for changes
  args host?

tool route
  safe    the routing table
  bare
  -n -e -ee -v -F -C -V -h -4 -6 --numeric --extend --verbose --fib --cache --inet --inet6 --version --help
  -A                    enum(inet|inet6)
  sub get
    args routeto
  sub show
  sub print
  deny add del delete change flush monitor append : changes the table

tool ethtool
  safe    settings and counters of one interface, shown once
  -a -c -g -k -i -S -n -u -T -x -P -l -m -h -I
  --show-pause --show-coalesce --show-ring --show-features --show-offload --driver --statistics --phy-statistics --show-nfc --show-ntuple
  --show-time-stamping --show-rxfh-indir --show-rxfh --show-permaddr --show-channels --module-info --dump-module-eeprom --show-priv-flags --show-eee --show-fec
  --show-tunnels --show-module --show-mm --show-pse --get-plca-cfg --get-plca-status --json --version --help --include-statistics --get-phy-tunable --get-tunable --all-groups --show-hwtimestamp-cfg
  --groups              set(eth-phy|eth-mac|eth-ctrl|rmon)
  word eth-phy eth-mac eth-ctrl rmon
  no -p --identify : blinks the port's light
  no -d --register-dump -e --eeprom-dump -w --get-dump : dumps raw registers or memory
  no -t --test --cable-test --cable-test-tdr : takes the link out of service
  no -r --negotiate --reset -f --flash -E --change-eeprom : changes or resets the device
  no -s -A -C -G -K -N -U -X -L -W -Q --change --pause --coalesce --set-ring --features --offload --config-nfc --config-ntuple --rxfh --set-channels --set-priv-flags --set-eee --set-fec --set-module --set-phy-tunable --set-tunable --set-dump --per-queue : sets instead of shows
  no --monitor --debug : follows for ever
  word rx-flow-hash enum(tcp4|udp4|ah4|esp4|sctp4|tcp6|udp6|ah6|esp6|sctp6)
  word rule number
  word context number
  word downshift fast-link-down energy-detect-power-down rx-copybreak tx-copybreak tx-buf-size pfc-prevention-tout
  word hex : enum(on|off)
  args iface?

tool mii-tool
  safe    link state of interfaces
  -v --verbose -V --version
  args iface*

tool lsof
  safe    open sockets, or one process' files, listed once
  check lsof
  -a -b -l -n -N -P -R -t -U -v -V -w -Q -E -X -K -o -C -f -h
  -i                    re([46]?(tcp|TCP|udp|UDP|sctp|SCTP)?(@[A-Za-z0-9_.:\[\]-]{1,253})?(:[A-Za-z0-9_,-]{1,60})?)~
  -s                    re((TCP|UDP|tcp|udp):[A-Z_a-z,^-]{1,120})~
  -p                    re(\^?[0-9]{1,8}(,\^?[0-9]{1,8}){0,20})
  -g                    re(\^?[0-9]{1,8}(,\^?[0-9]{1,8}){0,20})~
  -u                    re(\^?[A-Za-z0-9_-]{1,32}(,\^?[A-Za-z0-9_-]{1,32}){0,10})
  -c                    re([A-Za-z0-9_^-][A-Za-z0-9_.-]{0,40})
  -d                    re(\^?[a-z0-9,-]{1,60})
  -F                    re([a-zA-Z0-9]{1,40})~
  -T                    re([fqs]{1,3})~
  -L                    re([0-9]{1,4})~
  -S                    int(2..60)~
  +c                    int(0..64)
  +L                    re([0-9]{1,4})~
  +M -M +w
  no -r +r : repeats for ever
  no -D : builds or reads a device cache file
  no +d +D : walks a folder
  no -k -m +m -A : reads or writes another file

tool fuser
  safe    processes that use a port
  -v -a -n -4 -6 -u -V --verbose --all --user --version
  -n --namespace        enum(tcp|udp|file)
  no -k --kill -i --interactive -w : kills processes
  args re([0-9]{1,5}(,[A-Za-z0-9.:]{0,60}){0,2}|[0-9]{1,5}/(tcp|udp))*

tool conntrack
  safe    connection tracking entries, listed once
  -L --dump -S --stats -C --count -V --version -h --help
  -s --src --orig-src -d --dst --orig-dst -r --reply-src -q --reply-dst  prefix
  -n --src-nat -g --dst-nat -j --any-nat  ip?
  -p --proto --protonum name
  -f --family           enum(ipv4|ipv6)
  -m --mark             hex
  -l --label            list
  -u --status           set(ASSURED|SEEN_REPLY|UNREPLIED|FIXED_TIMEOUT|EXPECTED|OFFLOAD|HW_OFFLOAD|UNSET|CONFIRMED|SRC_NAT|DST_NAT|NONE)
  -o --output           set(extended|xml|timestamp|id|ktimestamp|labels|save|userspace)
  -w --zone             number
  --sport --orig-port-src --dport --orig-port-dst --reply-port-src --reply-port-dst int(0..65535)
  --state               enum(NONE|SYN_SENT|SYN_RECV|ESTABLISHED|FIN_WAIT|CLOSE_WAIT|LAST_ACK|TIME_WAIT|CLOSE|LISTEN)
  --icmp-type --icmp-code number
  no -z --zero : resets counters
  no -D --delete -U --update -I --create -F --flush -R --load-file -A --add : changes the table
  no -E --event : follows for ever
  no -G --get : is not on the list
  need -L --dump -S --stats -C --count -V --version -h --help : needs -L to list
  args enum(conntrack|expect|dying|unconfirmed)?

block nft-flags
  -a --handle -n -nn -nnn --numeric -N --reversedns -s --stateless -S --service -j --json -u --guid -p --numeric-protocol -y --numeric-priority -t --terse -T --numeric-time -v --version -h --help -V

tool nft
  style getopt
  bare
  check version-or-verb
  safe    tables, chains, sets and counters, listed once
  use nft-flags
  no -f --file -I --includepath -D --define : reads a file
  no -i --interactive : an interactive prompt
  no -e --echo -o --optimize -c --check : is only for changes
  sub list
    args re(ruleset|tables?|chains?|sets?|maps?|counters?|quotas?|limits?|flowtables?|meters?|hooks|secmarks?|synproxys?|synproxy|ct)  re([A-Za-z0-9_][A-Za-z0-9_.-]{0,60})*
  sub describe
    args name+
  deny monitor : follows for ever
  deny add create insert delete flush reset replace rename import export destroy : changes the rules

tool iptables ip6tables iptables-legacy ip6tables-legacy iptables-nft ip6tables-nft
  safe    rules, listed or checked
  -L --list -S --list-rules -C --check  re([A-Za-z0-9_.:-]{1,40})_
  -t --table            enum(filter|nat|mangle|raw|security)
  -w --wait             sec(0..30)_
  -n -v -x -V -h --numeric --verbose --exact --line-numbers --version --help -4 -6 -0
  -p --protocol         re(!?[a-z0-9-]{1,20})
  -s --source --src -d --destination --dst  re([0-9a-fA-F.:/,]{1,80}|[A-Za-z0-9.-]{1,80})
  -i --in-interface -o --out-interface re([A-Za-z0-9_.+-]{1,20})
  -m --match -j --jump -g --goto  re([A-Za-z0-9_][A-Za-z0-9_-]{0,40})
  --dport --destination-port --sport --source-port --dports --sports --destination-ports --source-ports re([a-z0-9:,-]{1,80})
  --state --ctstate     set(NEW|ESTABLISHED|RELATED|INVALID|UNTRACKED|SNAT|DNAT)
  --tcp-flags           re([A-Z,]{1,40})
  --icmp-type --icmpv6-type --reject-with --comment --limit --to-destination --to-source --to-ports --mark --set-mark --mac-source --log-prefix word
  --syn -f
  no -Z --zero : resets counters
  no -A -D -I -R -F -N -X -E -P --append --delete --insert --replace --flush --new-chain --delete-chain --rename-chain --policy : changes the rules
  no --modprobe -M : starts a program
  need -L --list -S --list-rules -C --check -V --version -h --help : needs -L or -S to list
  args re([0-9]{1,5}|!|[A-Z,]{3,40})*

tool iptables-save ip6tables-save iptables-legacy-save iptables-nft-save ip6tables-legacy-save ip6tables-nft-save
  safe    all rules, printed
  -c --counters -V --version -h --help
  -t --table            enum(filter|nat|mangle|raw|security)
  no -f --file : writes a file
  no -M --modprobe : starts a program

tool arptables ebtables
  safe    rules, listed
  -L --list             re([A-Za-z0-9_.:-]{1,40})_
  -t --table            enum(filter|nat|broute)
  -n -v --Ln --Lc --Lmac2 --line-numbers
  need -L --list : needs -L to list

tool ipset
  style words
  safe    sets, listed, and whether one has an entry
  -q -quiet -n -name -t -terse -s -sorted -o=plain
  sub list
    -n -name -t -terse -s -sorted
    args name?
  sub save
    args name?
  sub test
    args name re([A-Za-z0-9_][A-Za-z0-9_.:/,%-]{0,120})
  sub version
  deny create add del destroy flush rename swap restore x n : changes sets

tool ipvsadm
  safe    virtual servers, listed
  -L -l --list -n --numeric --stats --rate --timeout --daemon --exact --thresholds --persistent-conn --nosort --sort -c --connection -h --help -v --version
  -t --tcp-service -u --udp-service hostport
  -f --fwmark-service   number
  no -C --clear -R --restore -Z --zero -A -E -D -a -e -d : changes the table
  need -L -l --list -h --help -v --version : needs -L to list

tool firewall-cmd
  style words
  safe    the firewall's state and zones
  --state --get-default-zone --get-active-zones --get-zones --get-services --get-icmptypes --list-all --list-all-zones --list-services --list-ports --list-rich-rules --list-interfaces --list-sources --list-forward-ports --list-icmp-blocks --query-masquerade --query-panic --permanent --version --help --get-log-denied
  --zone                name=
  --info-zone --info-service --get-zone-of-interface --query-service --query-port name=

tool ufw
  style words
  safe    the firewall's state
  sub status
    args enum(verbose|numbered)?
  sub version
  sub app
    sub list

tool nstat
  safe    kernel counters, without touching the history file
  -a -j -p -s -z -V -h --ignore --noupdate --json --pretty --zeros --version --help
  no -r --reset : resets the history
  no -n --nooutput : writes the history
  no -t -d --interval --scan : follows for ever
  need -s --noupdate -h --help -V --version : writes its history file; add -s
  args re([A-Za-z0-9_*?]{1,60})*

tool lnstat rtstat ctstat
  safe    kernel statistics, a bounded number of times
  -c --count            int(1..60)
  -i --interval         int(1..10)
  -k --keys             list
  -f --file             re([a-z_]{1,40})
  -w --width            list
  -s --subject          int(0..2)
  -d --dump -j --json -V --version
  need -c --count -d --dump -V --version : never ends without a count

tool sysctl
  safe    kernel settings, read
  check sysctl-all
  -n --values -e --ignore -N --names -b --binary -a --all -A -X -V --version -h --help
  -r --pattern          re([A-Za-z0-9_.*^$\[\]|()\\-]{1,120})
  no -w --write : changes settings
  no -p --load --system -f : applies a file's settings
  args sysctl*

tool uptime
  safe    load and up time
  -p -s -V -h --pretty --since --version --help

tool free
  safe    memory, once or a bounded number of times
  -b -k -m -g -h -w -t -l -v -L --bytes --kibi --mebi --gibi --tebi --kilo --mega --giga --tera --human --wide --total --lohi --si --line --committed --version --help
  -c --count            int(1..30)
  -s --seconds          sec(0.1..10)
  with -s -c : repeats for ever; add -c

tool df
  safe    file systems and their space
  -a -h -H -i -k -l -m -P -T --all --human-readable --si --inodes --local --portability --total --print-type --no-sync --version --help
  -B --block-size       re([0-9]{0,6}[KMGT]?i?B?)
  -t --type -x --exclude-type  name
  --output              set(source|fstype|itotal|iused|iavail|ipcent|size|used|avail|pcent|file|target)?
  no --sync : writes to disks first
  args re([A-Za-z0-9_./-]{1,200})*

tool ps
  style raw
  safe    processes, without their environment
  check ps

tool pgrep
  safe    process numbers by name
  -a -l -f -x -n -o -c -v -i -w --list-full --list-name --full --exact --newest --oldest --count
  -u -U -P -g -t --euid --uid --parent  list
  args re([A-Za-z0-9_.\x20/^$-]{1,80})?

tool pidof
  safe    process numbers by name
  -s -x -c -q
  args name+

tool pstree
  safe    the process tree
  -a -A -c -g -l -n -N -p -s -S -t -T -u -U -Z
  -H                    number
  args name?

tool top
  safe    processes, a bounded number of times, as text
  -b -c -i -H -S -1 -s
  -n                    int(1..10)
  -d                    sec(0.5..10)
  -p                    re([0-9,]{1,80})
  -o                    re([+-]?[A-Z%a-z]{1,12})
  -w                    int(40..512)~
  -u -U                 name
  need -b : is an interactive screen; add -b -n 1
  with -b -n : never ends without -n 1

tool dmesg
  safe    the kernel's messages, read once
  -T -k -u -x -t -r -d -e -J -L -P -S -V -h
  -H --human --ctime --kernel --userspace --decode --notime --raw --show-delta --reltime --json --nopager --syslog --version --help
  -l --level            re((emerg|alert|crit|err|warn|notice|info|debug)\+?(,(emerg|alert|crit|err|warn|notice|info|debug)\+?)*)
  -f --facility         set(kern|user|mail|daemon|auth|syslog|lpr|news|authpriv|cron)
  --time-format         enum(ctime|reltime|delta|notime|iso|raw)
  --since --until       time
  -s --buffer-size      number
  --color --noescape    enum(never|auto|always)?
  no -c -C --read-clear --clear : clears the buffer
  no -D -E -n --console-off --console-on --console-level : changes the console log level
  no -w -W --follow --follow-new : follows for ever
  no -F --file -K --kmsg-file : reads another file
  with -H -P --nopager : starts a pager; add --nopager
  with --human -P --nopager : starts a pager; add --nopager

tool vmstat
  safe    memory and scheduling, once or a bounded number of times
  -a -f -m -n -s -d -D -t -w -y -V -h --active --forks --slabs --stats --disk --disk-sum --timestamp --wide --one-header --version --help
  -S --unit             enum(k|K|m|M)
  -p --partition        name
  check delay-count
  args int(1..10)? int(1..60)?

tool mpstat
  safe    processor load, a bounded number of times
  -A -n -u -V -T -H
  -P                    re(ALL|[0-9,-]{1,40})
  -I                    enum(SUM|CPU|SCPU|ALL)
  -N                    re(ALL|[0-9,-]{1,40})
  -o                    enum(JSON)
  --dec                 int(0..2)=
  check delay-count
  args int(1..10)? int(1..60)?

tool iostat
  safe    disk load, a bounded number of times
  -c -d -h -k -m -N -p -s -t -V -x -y -z --compact --human --pretty
  -o                    enum(JSON)
  check delay-count
  args int(1..10)? int(1..60)?

tool pidstat
  safe    load by process, a bounded number of times
  -d -H -h -I -l -R -r -s -t -u -V -v -w --human
  -C -G                 name
  -p                    re(ALL|SELF|[0-9,]{1,60})
  -T                    enum(TASK|CHILD|ALL)
  -U                    name~
  no -e : starts a program
  check delay-count
  args int(1..10)? int(1..60)?

tool sar
  safe    load and network counters, a bounded number of times
  -A -B -b -C -d -F -H -h -p -q -r -S -t -u -v -W -w -y -z -V --human --pretty -x
  -n                    set(DEV|EDEV|NFS|NFSD|SOCK|IP|EIP|ICMP|EICMP|TCP|ETCP|UDP|SOCK6|IP6|EIP6|ICMP6|EICMP6|UDP6|FC|SOFT|ALL)
  -P                    re(ALL|[0-9,-]{1,40})
  -I                    re(SUM|ALL|[0-9,-]{1,40})
  -m                    set(CPU|FAN|FREQ|IN|TEMP|USB|BAT|ALL)
  -q                    set(CPU|IO|LOAD|MEM|PSI|ALL)?
  --iface               list=
  --dec                 int(0..2)=
  no -o : writes a file
  no -f : reads another file
  args int(1..10) int(1..60)

tool numastat
  safe    memory by node
  -c -m -n -v -z -V

tool lsmod
  safe    loaded modules

tool modinfo
  safe    facts about one module
  -a -d -l -p -n -0 --author --description --license --parameters --filename
  -F --field            name
  args re([A-Za-z0-9_-]{1,60})

tool hostname
  style words
  safe    the machine's name
  -f -i -I -s -d -A -y -a --fqdn --long --short --ip-address --all-ip-addresses --all-fqdns --domain --alias --version --help

tool uname
  safe    kernel and machine
  -a -s -n -r -v -m -p -i -o --all --kernel-name --nodename --kernel-release --kernel-version --machine --processor --hardware-platform --operating-system --version --help

tool arch nproc whoami groups tty logname runlevel
  safe    one fact about the machine or the caller
  --all --version --help

tool id
  safe    the caller's user and groups
  -u -g -G -n -r -Z -z
  args name?

tool date
  style words
  safe    the time, printed
  -u --utc --universal -R --rfc-email -I -Idate -Ihours -Iminutes -Iseconds -Ins -Id -Ih -Im -Is --version --help
  -d --date             re([A-Za-z0-9_:.\x20+-]{1,40}|@-?[0-9]{1,12}([.,][0-9]{1,9})?)
  --iso-8601 --rfc-3339 enum(date|hours|minutes|seconds|ns)=
  no -s --set : sets the clock
  no -f --file -r --reference : reads a file
  args re(\+[\x20-~]{1,80})?

tool w who
  safe    who is logged in
  -h -s -f -i -o -u -a -b -H -q -r -T -m -V --no-header --short --ip-addr

tool lscpu
  safe    processors
  -a -b -c -J -y -x -B --all --online --offline --json --physical --hex --bytes --version --help
  -e --extended -p --parse -C --caches list?

tool lspci lsusb
  safe    devices on the bus
  -v -vv -k -n -nn -t -D -m -mm -b
  -s -d                 re([0-9a-fA-F:.*]{1,20})

tool lsblk
  safe    disks and their partitions
  -a -b -d -f -i -J -l -m -n -p -P -r -S -t -T -A -D -O -s -z --all --bytes --nodeps --fs --json --list --noheadings --paths --pairs --raw --tree --ascii --discard --inverse --output-all --perms --topology --scsi --zoned --version --help
  -o --output           list
  -e -I --exclude --include list
  args re(/dev/[A-Za-z0-9_./-]{1,200})*

tool findmnt
  safe    mounted file systems, listed once
  -a -A -b -C -D -f -i -J -k -l -n -P -r -R -u -U -v --all --ascii --bytes --nocanonicalize --df --first-only --invert --json --kernel --list --noheadings --pairs --raw --submounts --notruncate --uniq --real --pseudo --version --help
  -o --output           list
  -t --types -O --options -d --direction list
  -T --target -M --mountpoint re(/[A-Za-z0-9_./-]{0,200})
  -S --source           re([A-Za-z0-9_./:@=-]{1,200})
  no -p --poll -w --timeout : follows for ever
  no -s --fstab -F --tab-file -m --mtab -N --task -x --verify : reads another file
  args re([A-Za-z0-9_./:@=-]{1,200})? re(/[A-Za-z0-9_./-]{0,200})?

tool mount
  style words
  safe    mounted file systems, listed
  -l -V --version --help

tool lshw
  style words
  safe    hardware of one class, without serial numbers
  -short -businfo -numeric -quiet
  -c -C -class enum(network)
  need -c -C -class : lists everything; add -class network

tool ls
  safe    names in the kernel's network folders and in capture folders
  -l -a -h -1 -t -r -S -d -L -n -A -F --all --human-readable
  args netdir+

tool sha256sum sha1sum md5sum b2sum file stat
  safe    digest or kind of capture files
  args capture+

tool nfsstat
  safe    NFS counters
  -c -s -m -r -n -o -l -v -2 -3 -4 --client --server --mounts --rpc --nfs --list

tool teamdctl
  style words
  safe    a team device's state
  args iface enum(state) enum(view|dump)?

tool wpa_cli
  style words
  safe    a wireless client's state
  -i                    iface
  args enum(status)

tool ipsec
  style words
  safe    tunnels, without keys
  sub status statusall version

tool swanctl
  safe    tunnels, without keys
  -l --list-sas -L --list-conns -P --list-pols -S --stats -v --version --noblock --pretty
  -i --ike -c --child   name
  need -l --list-sas -L --list-conns -P --list-pols -S --stats -v --version : needs one of the --list options

tool vnstat
  safe    traffic counters from the database
  -d -h -m -w -y -5 -hg --oneline --days --hours --months --years
  --json --xml          re([a-z]?)?
  -i --iface            iface

tool unbound-control
  style words
  safe    the resolver's state
  sub status stats_noreset list_forwards list_stubs list_local_zones
  deny stats reload flush stop start : changes the resolver or its counters

tool rndc
  style words
  safe    the name server's state
  sub status

tool sensors
  safe    temperatures and fans
  -A -u -j -f

tool lsns
  safe    namespaces
  -J -l -n -r -W -u --json --list --noheadings --raw --notruncate --version --help
  -o --output           list
  -p --task             number
  -t --type             enum(mnt|net|ipc|user|pid|uts|cgroup|time)

tool which
  safe    where a program is
  -a
  args name+

tool timedatectl
  style words
  safe    the clock and its synchronisation
  bare
  --no-pager -a --all --version --help
  sub status
  sub show
  sub timesync-status
  sub show-timesync
  sub list-timezones

tool hostnamectl
  style words
  safe    the machine's name and system
  bare
  --no-pager --json=short --json=pretty --static --transient --pretty
  sub status
  sub hostname

tool chronyc
  style words
  safe    time synchronisation, shown
  -n -c -4 -6 -v -N -a
  sub tracking
  sub sources
    -v -a
    args enum(-v|-a)?
  sub sourcestats
    -v -a
    args enum(-v|-a)?
  sub activity
  sub ntpdata
    args host?
  sub serverstats
  sub rtcdata
  sub smoothing
  sub selectdata
    -v -a
  sub sourcename
    args ip
  sub waitsync
    args int(1..20) re([0-9.]{1,8})? re([0-9.]{1,8})? sec(0.1..10)?

tool ntpq
  safe    time synchronisation, shown
  -p -n -4 -6 -w -V --peers --numeric --wide --version
  -c --command          enum(rv|readvar|peers|pe|as|associations|lpeers|lassociations|opeers|apeers|rv\x200|sysinfo|sysstats|kerninfo|monstats|iostats|pstats)
  need -p -c -V --peers --command --version : is an interactive prompt; add -p
  args host?

tool ntpdate
  safe    asks a time server, without setting the clock (-q)
  -q -u -v -4 -6 -d
  -p                    int(1..8)
  -t                    sec(0.1..10)
  no -b -B -s -a -k -e -o : sets the clock or uses a key
  need -q : sets the clock; add -q
  args host host? host? host?

tool ntpstat
  safe    is the clock synchronised

tool iw
  style words
  safe    wireless devices, shown once
  sub dev
    bare
    args iface? enum(link|info|station|survey)? enum(dump)?
  sub list
  sub phy
    bare
  sub reg
    sub get

tool iwconfig
  style words
  safe    wireless settings of interfaces
  args iface?

tool brctl
  style words
  safe    bridges, shown
  sub show
    args iface*
  sub showmacs
    args iface
  sub showstp
    args iface

tool lldpctl
  safe    neighbours learned from LLDP
  -d -v
  -f                    enum(plain|xml|json|json0|keyvalue)
  args iface*

tool lldpcli
  safe    neighbours learned from LLDP
  -v
  -f                    enum(plain|xml|json|json0|keyvalue)
  sub show
    args enum(neighbors|neighbours|interfaces|chassis|statistics|configuration) re(details|summary|hidden|ports|[A-Za-z0-9_.,-]{1,60})*
  deny watch : follows for ever
  deny configure unconfigure update pause resume : changes the service

tool networkctl
  safe    the network service's links
  bare
  -a -l -s --all --full --stats --no-pager --no-legend
  -n --lines            int(0..50)
  --json                enum(short|pretty|off)
  sub list
    args iface*
  sub status
    args iface*
  sub lldp
    args iface*
  sub label
  deny delete up down renew forcerenew reconfigure reload edit mask unmask cat : changes or prints settings

tool nmcli
  style dash
  abbrev
  safe    connections and devices, without secrets
  check nmcli-fields
  bare
  -t -terse -p -pretty -o -overview -v -version -h -help --terse --pretty --overview --version --help
  -f -fields --fields   list
  -g -get-values --get-values list
  -m -mode --mode       enum(tabular|multiline)
  -c -colors --colors   enum(no|yes|auto)
  -e -escape --escape   enum(yes|no)
  -w -wait --wait       int(0..60)
  no -s -show-secrets --show-secrets : prints keys
  no -a -ask --ask : asks on a terminal
  sub general
    bare
    sub status
    sub permissions
    deny hostname logging reload : changes settings
  sub networking
    sub connectivity
      bare
      sub check
    deny on off : changes the network
  sub radio
    bare
    sub all
      bare
    deny wifi wwan : changes radios
  sub connection
    bare
    sub show
      --active
      word id uuid : text
      args re([A-Za-z0-9_.:@\x20()/-]{1,120})*
    deny up down add modify edit clone delete monitor reload load import export : changes connections
  sub device
    bare
    sub status
    sub show
      args iface?
    sub lldp
      bare
      sub list
    deny set connect reapply modify disconnect delete monitor up down checkpoint : changes devices
    sub wifi
      sub list
        --rescan            enum(no)
        word rescan : enum(no)
        need rescan --rescan : may start a scan; add --rescan no
        word ifname iface
      deny connect hotspot rescan show-password : changes devices or prints keys
  deny monitor agent : follows for ever

tool wg
  style words
  safe    tunnels and their peers, without keys
  bare
  sub show
    args iface? enum(public-key|peers|endpoints|transfer|latest-handshakes|persistent-keepalive|listen-port|fwmark|allowed-ips)?
  deny showconf : prints the private key
  deny set setconf addconf syncconf genkey genpsk pubkey : changes or makes keys

tool systemctl
  safe    units and their states, without their logs
  --no-pager --no-legend --plain --all -a --full -l --failed -q --quiet --reverse --after --before --recursive --value --version --help
  -t --type             set(service|socket|timer|target|mount|automount|path|slice|scope|device|swap)
  --state               list
  -p -P --property      set(ActiveState|SubState|LoadState|UnitFileState|MainPID|NRestarts|ExecMainStatus|ExecMainCode|ExecMainStartTimestamp|ActiveEnterTimestamp|InactiveEnterTimestamp|Result|Id|Names|Description|MemoryCurrent|TasksCurrent|CPUUsageNSec|FragmentPath|After|Before|Requires|Wants|WantedBy|RequiredBy|PartOf|BindsTo|Triggers|TriggeredBy|Listen|StateChangeTimestamp|Type|Restart|TimeoutStartUSec|WatchdogUSec|LimitNOFILE|NextElapseUSecRealtime|LastTriggerUSec|NeedDaemonReload|StatusText|StatusErrno|InvocationID)
  -o --output           enum(json|json-pretty|short)
  bare
  check systemctl-show
  sub list-units list-sockets list-timers list-unit-files list-dependencies list-jobs list-paths list-automounts
    need --no-pager : may start a pager; add --no-pager
    args re([A-Za-z0-9_.@*?:-]{1,120})*
  sub is-active is-enabled is-failed is-system-running get-default
    args re([A-Za-z0-9_.@:-]{1,120})*
  sub show
    need --no-pager : may start a pager; add --no-pager
    args re([A-Za-z0-9_.@:-]{1,120})*
  deny status : also shows the last lines of the service's log
  deny cat edit : prints or changes unit files, which may hold secrets

tool rdma devlink
  style dash
  safe    devices, shown
  -V -j -p -s -d -n -v -json -pretty -statistics -details -verbose
  sub dev
    bare
    sub show
      args name?
    sub info
      args name?
    sub eswitch
      sub show
        args name
  sub link
    bare
    sub show
      args name?
  sub port
    bare
    sub show
      args name?
  sub health
    sub show
      args name?
  sub statistic
    bare
    sub show
  sub system
    sub show
  sub resource
    bare
    sub show
      args name*

tool scutil
  style words
  safe    resolver, proxy and reachability (macOS)
  --dns --proxy --nwi
  need --dns --proxy --nwi : is an interactive prompt; add --dns

tool sw_vers
  safe    the system's version (macOS)

tool networksetup
  style words
  safe    services and their settings, shown (macOS)
  -listallnetworkservices -listallhardwareports -listnetworkserviceorder -listlocations -getcurrentlocation -getcomputername -listallinterfaces -version
  -getinfo -getdnsservers -getsearchdomains -getwebproxy -getsecurewebproxy -getautoproxyurl -getproxybypassdomains -getMTU -getmacaddress -getairportnetwork -getnetworkserviceenabled -getv6info re([A-Za-z0-9_.\x20/-]{1,60})

tool ipconfig
  style words
  safe    one fact about an interface (macOS)
  sub getifaddr
    args iface
  sub getoption
    args iface re([a-z_]{1,40})
  sub ifcount
  sub getpacket getsummary
    args iface

tool dscacheutil
  style words
  safe    name look-ups (macOS)
  -q                    enum(host|service|protocol|rpc|mount)
  -a                    enum(name|ip_address|port)
  args re([A-Za-z0-9_.:-]{1,253})?

tool last
  safe    who was logged in and when the machine started
  -a -d -F -i -R -w -x --hostlast --dns --fulltimes --ip --nohostname --fullnames --system -V --version -h --help
  -n --limit            int(1..1000)
  -s --since -t --until -p --present time
  --time-format         enum(notime|short|full|iso)
  no -f --file : reads another file
  args name?

tool numactl
  safe    memory nodes, shown
  style words
  -H --hardware -s --show
  need -H --hardware -s --show : starts a program

tool ipcalc sipcalc subnetcalc
  safe    arithmetic on addresses and prefixes
  -4 -6 -a -b -c -h -i -l -m -n -p -s -v --check --network --netmask --prefix --broadcast --minaddr --maxaddr --addresses --addrspace --json --no-decorate --all-info --info --nocolor --help --version
  args prefix prefix? prefix?

tool virsh
  style pflag
  safe    guests, networks and nodes, listed
  -q --quiet -r --readonly --version -v
  no -c --connect -k -K -l --log -e --escape : talks to another host or writes a file
  sub list
    --all --inactive --name --uuid --title --state-running --state-paused --state-shutoff --table --autostart
  sub dominfo domstate domiflist domblklist domid domuuid vcpucount domifaddr dommemstat
    --full --source --inactive --details --reason
    args name
  sub domifstat domif-getlink domiftune
    args name name
  sub net-list
    --all --inactive --name --uuid --table
  sub net-info net-uuid net-dhcp-leases
    args name
  sub iface-list nodedev-list pool-list
    --all --inactive
  sub nodeinfo freecell nodememstats nodecpustats hostname uri version sysinfo
  deny dumpxml net-dumpxml : prints settings, which may hold passwords

tool nginx
  style words
  safe    the version
  -v -V
  need -v -V : starts or changes the server

tool haproxy keepalived squid
  style words
  safe    the version
  -v -vv --version
  need -v -vv --version : starts the server or reads its configuration

tool ifstat
  safe    traffic by interface, without a history file
  -a -j -p -s -z -e -V -h --ignore --noupdate --json --pretty --zeros --errors --version --help
  no -r --reset -n --nooutput -d --scan -t --interval : changes the history or follows for ever
  need -s --noupdate -V --version -h --help : writes its history file; add -s
  args iface*

tool ovs-appctl
  style words
  safe    forwarding tables and tunnels, shown
  sub fdb/show fdb/stats-show bond/show lacp/show bfd/show cfm/show stp/show rstp/show ofproto/list mdb/show
    args iface?
  sub ovs/route/show tnl/ports/show tnl/arp/show tnl/neigh/show dpif/show dpif-netdev/pmd-stats-show coverage/show version list-commands
  sub dpctl/show dpctl/dump-flows dpctl/dump-conntrack dpif/dump-flows
    args iface?
