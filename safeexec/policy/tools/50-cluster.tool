# Containers and clusters.

block kube
  -n --namespace        re([a-z0-9][a-z0-9.-]{0,62})
  -A --all-namespaces
  --context --cluster   re([A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,200})
  --request-timeout     re([0-9]{1,4}(ms|s|m)?)
  -v --v                int(0..5)
  --warnings-as-errors --match-server-version
  no --kubeconfig : a kubeconfig can start a program to log in
  no --token --username --password --client-key --client-certificate --as --as-group --as-uid --auth-provider --user : carries a credential or another identity
  no -s --server --certificate-authority --insecure-skip-tls-verify --tls-server-name : talks to another server
  no --profile --profile-output --log-file --cache-dir --log-dir : writes a file
  sub get
    check kubectl-get
    -o --output         re(wide|name|yaml|json|(jsonpath|jsonpath-as-json|go-template|custom-columns)=.{1,1000})
    --template          re([\x20-~]{1,1000})
    -l --selector       re([A-Za-z0-9_./=!,\x20()-]{1,400})
    --field-selector    re([A-Za-z0-9_./=!,-]{1,400})
    --sort-by           re([A-Za-z0-9_.\[\]{}'"/\\-]{1,200})
    -L --label-columns  list
    --chunk-size --limit int(0..10000)
    --show-kind --show-labels --no-headers --ignore-not-found --server-print --allow-missing-template-keys --show-managed-fields
    -w --watch --watch-only --output-watch-events enum(false)=
    --raw               re(/(healthz|readyz|livez)([/?][a-z0-9/=&?-]{0,80})?|/version)=
    no -f --filename -k --kustomize -R --recursive : reads files
    no --subresource : is not on the list
    args re([A-Za-z0-9][A-Za-z0-9._,/:@-]{0,400})*
  sub describe
    check kubectl-get
    -l --selector       re([A-Za-z0-9_./=!,\x20()-]{1,400})
    --chunk-size        int(0..10000)
    --show-events
    no -f --filename -k --kustomize -R --recursive : reads files
    args re([A-Za-z0-9][A-Za-z0-9._,/:@-]{0,400})*
  sub logs
    check kubectl-logs
    --tail              int(1..1000)
    -c --container      re([a-z0-9][a-z0-9.-]{0,62})
    -l --selector       re([A-Za-z0-9_./=!,\x20()-]{1,400})
    --since             re([0-9]{1,5}(s|m|h))
    --since-time        re([0-9TZ:.+-]{10,40})
    --limit-bytes       int(1..1000000)
    --max-log-requests  int(1..20)
    --timestamps --previous -p --prefix --all-containers --ignore-errors
    -f --follow         enum(false)=
    need --tail --limit-bytes : has no bound; add --tail=100
    args re([A-Za-z0-9][A-Za-z0-9./-]{0,252})* 
  sub top
    sub nodes node no
      -l --selector --sort-by re([A-Za-z0-9_./=!,-]{1,400})
      --no-headers --show-capacity --use-protocol-buffers
      args name?
    sub pods pod po
      -l --selector --sort-by --field-selector re([A-Za-z0-9_./=!,-]{1,400})
      --no-headers --containers --sum --use-protocol-buffers
      args name?
  sub api-resources
    --verbs --api-group --sort-by re([A-Za-z0-9_.,-]{1,200})
    -o --output         enum(wide|name)
    --namespaced --no-headers --cached
  sub api-versions
  sub version
    -o --output         enum(json|yaml)
    --client --short
  sub cluster-info
    bare
    deny dump : dumps everything
  sub explain
    --api-version       re([a-z0-9./-]{1,80})
    --output            enum(plaintext|plaintext-openapiv2)
    --recursive
    args re([A-Za-z0-9.-]{1,200})
  sub auth
    sub can-i
      --list --all-namespaces --no-headers -q --quiet
      --subresource     name
      args re([A-Za-z0-9*./-]{1,100})*
    sub whoami
      -o --output       enum(json|yaml)
    deny reconcile : changes roles
  sub config
    sub current-context
    sub get-contexts
      -o --output       enum(name)
      --no-headers
      args name*
    sub get-clusters
    sub get-users
    sub view
      --minify -o=json -o=yaml
      -o --output       enum(json|yaml)
      no --raw --flatten : prints keys and tokens
    deny set set-cluster set-context set-credentials unset use use-context delete-cluster delete-context delete-user rename-context : changes the configuration
  sub events
    --for               re([A-Za-z0-9./-]{1,200})
    --types             re([A-Za-z,]{1,60})
    -o --output         enum(json|yaml|wide)
    --no-headers
    -w --watch          enum(false)=
  sub rollout
    sub status
      --watch -w        enum(false)=
      --timeout         re([0-9]{1,3}(s|m))
      --revision        int(0..100000)
      -l --selector     re([A-Za-z0-9_./=!,-]{1,400})
      need --watch --timeout : follows a rollout; add --watch=false
      args re([A-Za-z0-9][A-Za-z0-9./-]{0,252}) name?
    sub history
      --revision        int(0..100000)
      -o --output       enum(json|yaml|name)
      args re((deploy|deployment|deployments|ds|daemonset|daemonsets|sts|statefulset|statefulsets)(/[A-Za-z0-9.-]{1,252})?) name?
    deny restart undo pause resume : changes the rollout
  deny exec attach cp run debug : runs a program in a container
  deny port-forward proxy : opens a listener and never ends
  deny apply create delete edit patch replace scale autoscale label annotate taint cordon uncordon drain set expose wait : changes objects or waits
  deny diff kustomize plugin : runs another program or reads files

tool kubectl
  style pflag
  safe    objects other than secrets, described or listed once; bounded logs
  use kube

tool oc
  style pflag
  safe    objects other than secrets, described or listed once; bounded logs
  use kube
  sub whoami
    --show-server --show-console --show-context -c
    no -t --show-token : prints a token
  sub status
    --suggest
  sub projects
    -q --short
  sub project
    -q --short
  deny login logout rsh rsync adm extract process new-app new-project start-build import-image tag policy secrets registry image idle : changes the cluster, prints secrets or runs a program

tool docker podman nerdctl
  style pflag
  safe    containers, networks and images, listed; network facts of one container
  no -H --host -c --context --config --tlscert --tlskey --tlscacert --connection --url -r --remote --identity : talks to another server
  sub ps
    -a --all -q --quiet -l --latest --no-trunc -s --size
    -n --last           int(1..100)
    -f --filter         re([a-z-]{1,40}=[A-Za-z0-9_./:@=-]{1,200})
    --format            re([\x20-~]{1,500})
  sub container
    sub ls list ps
      -a --all -q --quiet -l --latest --no-trunc -s --size
      -f --filter       re([a-z-]{1,40}=[A-Za-z0-9_./:@=-]{1,200})
      --format          re([\x20-~]{1,500})
    sub port
      args name port?
    sub top
      args name
    sub inspect
      check template
      -f --format       re([\x20-~]{1,800})
      args name+
    deny logs stats exec attach start stop restart kill rm rename pause unpause update commit cp create run export prune wait diff : is not on the list
  sub network
    sub ls list
      -q --quiet --no-trunc
      -f --filter       re([a-z-]{1,40}=[A-Za-z0-9_./:@=-]{1,200})
      --format          re([\x20-~]{1,500})
    sub inspect
      -f --format       re([\x20-~]{1,800})
      -v --verbose
      args name+
    deny create rm connect disconnect prune reload update : changes networks
  sub images
    -a --all -q --quiet --digests --no-trunc
    -f --filter         re([a-z-]{1,40}=[A-Za-z0-9_./:@=-]{1,200})
    --format            re([\x20-~]{1,500})
    args name?
  sub port
    args name port?
  sub top
    args name
  sub stats
    --no-stream -a --all --no-trunc
    --format            re([\x20-~]{1,500})
    need --no-stream : follows for ever; add --no-stream
    args name*
  sub version
    -f --format         re([\x20-~]{1,300})
  sub info
    -f --format         re([\x20-~]{1,300})
  sub system
    sub df
      -v --verbose
    sub info
    deny prune events reset : changes or follows
  sub volume
    sub ls list
      -q --quiet
      -f --filter       re([a-z-]{1,40}=[A-Za-z0-9_./:@=-]{1,200})
    deny create rm prune inspect : changes volumes
  sub inspect
    check template
    -f --format         re([\x20-~]{1,800})
    -s --size
    --type              enum(container|network|image|volume)
    args name+
  deny exec run attach : runs a program in a container
  deny logs : a service's log has any size and content
  deny cp save load import export build push pull login logout commit tag : moves data or credentials
  deny create start stop restart kill rm rmi pause unpause rename update swarm service stack node secret config plugin compose : changes containers

tool crictl
  style pflag
  safe    pods and containers, listed
  -D --debug
  -t --timeout          re([0-9]{1,3}s?)
  no -r --runtime-endpoint -i --image-endpoint -c --config : talks to another service
  sub pods
    -v --verbose -q --quiet -l --latest --no-trunc
    --name --namespace --state -s --id --label re([A-Za-z0-9_./=-]{1,200})
    -o --output         enum(json|yaml|table)
    -n --last           int(1..100)
  sub ps
    -a --all -q --quiet -l --latest --no-trunc -v --verbose -r --resolve-image-path
    --name --namespace --state -s --id --image --label -p --pod re([A-Za-z0-9_./=:-]{1,200})
    -o --output         enum(json|yaml|table)
    -n --last           int(1..100)
  sub images
    -q --quiet -v --verbose --no-trunc --digests
    -o --output         enum(json|yaml|table)
    args name?
  sub stats
    -a --all
    -o --output         enum(json|yaml|table)
    args name?
  sub statsp
    -o --output         enum(json|yaml|table)
  sub version
  deny info : prints containerd's registries with their credentials
  deny exec attach run runp rm rmp rmi stop stopp start create pull update port-forward logs inspect inspectp config checkpoint : runs, changes or prints settings

tool cilium cilium-dbg
  style pflag
  safe    the agent's state, endpoints, services and policies
  -n --namespace        re([a-z0-9][a-z0-9.-]{0,62})
  --context             re([A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,200})
  -o --output           re(json|yaml|summary|table|jsonpath=[\x20-~]{1,300})
  sub status
    --verbose --brief --all-addresses --all-controllers --all-health --all-nodes --all-redirects --all-clusters --ignore-warnings
    --wait --interactive enum(false)=
    --timeout           re([0-9]{1,3}s)
  sub version
  sub endpoint
    sub list
      --no-headers
    sub health
      args number
    sub get
      -l --labels       list
      args re([A-Za-z0-9_:./-]{1,100})?
    sub log
      args number
    deny config disconnect regenerate labels : changes endpoints
  sub identity
    sub list
      --endpoints
    sub get
      args number
  sub node
    sub list
  sub service
    sub list
    sub get
      args number
    deny update delete : changes services
  sub policy
    sub get
    sub selectors
    deny import delete trace validate wait : changes policies
  sub ip
    sub list
  sub fqdn
    sub cache
      sub list
  sub bgp
    sub peers
    sub routes
      args re([a-z0-9]{1,20})*
  sub bpf
    sub ct
      sub list
        args re(global|[0-9]{1,8})
    sub lb
      sub list
        --frontends --backends --revnat --source-ranges --affinity
    sub nat
      sub list
    sub tunnel
      sub list
    sub ipcache
      sub list
      sub get
        args ip
    sub endpoint
      sub list
    sub policy
      sub get
        --all
        args number?
    sub metrics
      sub list
    sub bandwidth
      sub list
    sub egress
      sub list
  sub metrics
    sub list
  sub map
    sub list
      --verbose
  sub health
    bare
    sub status
      --verbose --succinct
  sub encrypt
    sub status
  deny monitor : follows for ever
  deny connectivity install uninstall upgrade hubble clustermesh config debuginfo sysdump encryption cleanup prefilter recorder kvstore : changes the cluster or collects everything

tool hubble
  style pflag
  safe    flows, a bounded number of them
  -o --output           enum(json|jsonpb|compact|dict|tab|table)
  --server              re(localhost:[0-9]{1,5}|127\.0\.0\.1:[0-9]{1,5})
  sub status
  sub version
  sub list
    sub nodes
    sub namespaces
  sub observe
    --last --first      int(1..1000)
    -n --namespace --pod --from-pod --to-pod --from-namespace --to-namespace --label --from-label --to-label --service --from-service --to-service re([A-Za-z0-9_.:/=,-]{1,200})
    --from-fqdn --to-fqdn --fqdn host
    --ip --from-ip --to-ip prefix
    --identity --from-identity --to-identity --port --from-port --to-port --drop-reason-desc --http-status --http-method --node-name --workload name
    --verdict           set(FORWARDED|DROPPED|ERROR|AUDIT|REDIRECTED|TRACED|TRANSLATED)
    -t --type           re([a-z0-9:,-]{1,60})
    --protocol          name
    --since --until     re([0-9]{1,6}(s|m|h)|[0-9TZ:.+-]{10,40})
    --not --ipv4 --ipv6 --print-node-name --ip-translation --numeric --reply --all -4 -6
    no -f --follow : follows for ever
    need --last --first : has no bound; add --last 50
  deny config watch record : changes or follows

tool calicoctl
  style pflag
  safe    network objects and the node's state
  -n --namespace        re([a-z0-9][a-z0-9.-]{0,62})
  --context             re([A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,200})
  --allow-version-mismatch
  no -c --config : reads another configuration
  sub get
    -o --output         enum(wide|ps|yaml|json)
    -a -A --all-namespaces --export
    args re((ippool|bgppeer|bgpconfig|bgpconfiguration|felixconfig|felixconfiguration|globalnetworkpolicy|gnp|networkpolicy|np|networkset|globalnetworkset|hostendpoint|hep|workloadendpoint|wep|node|profile|ipamconfig|clusterinfo|clusterinformation|ipreservation|kubecontrollersconfiguration|caliconodestatus|tier)(s|es|ies)?|nodes|networkpolicies|globalnetworkpolicies) name*
  sub node
    sub status
    sub checksystem
    deny run diags : changes or collects
  sub ipam
    sub show
      --show-blocks --show-borrowed --show-configuration
      --ip              ip=
    sub check
      --show-all-ips --show-problem-ips
    deny release configure split : changes addresses
  sub version
    --client

tool istioctl
  style pflag
  safe    proxies' state without keys
  -n --namespace -i --istioNamespace re([a-z0-9][a-z0-9.-]{0,62})
  --context             re([A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,200})
  no -c --kubeconfig : a kubeconfig can start a program to log in
  sub proxy-status ps
    --revision          name
    args re([A-Za-z0-9][A-Za-z0-9./-]{0,252})?
  sub proxy-config pc
    sub cluster clusters listener listeners route routes endpoint endpoints
      -o --output       enum(json|yaml|short)
      --fqdn --address --direction --subset --name --type --status --cluster re([A-Za-z0-9_.*|:/-]{1,200})
      --port            int(0..65535)
      --verbose
      args re([A-Za-z0-9][A-Za-z0-9./-]{0,252})
    deny secret secrets s : prints certificates and keys
    deny log bootstrap ecds all : changes levels or prints settings
  sub analyze
    -A --all-namespaces --use-kube --list-analyzers
    -o --output         enum(log|json|yaml)
    --failure-threshold --output-threshold enum(Info|Warning|Error)
    -S --suppress       re([A-Za-z0-9=*_./\x20-]{1,100})
    --timeout           re([0-9]{1,3}s)
  sub version
    --remote --short
    -o --output         enum(json|yaml)
  sub experimental x
    sub describe
      sub pod service svc
        args re([A-Za-z0-9][A-Za-z0-9./-]{0,252})
    sub authz
      sub check
        args re([A-Za-z0-9][A-Za-z0-9./-]{0,252})
    sub proxy-status ps
      args re([A-Za-z0-9][A-Za-z0-9./-]{0,252})?
    sub precheck
    deny internal-debug metrics wait add-to-mesh remove-from-mesh : is not on the list
  sub remote-clusters
  sub tag
    sub list
    deny set generate remove : changes tags
  deny install uninstall upgrade kube-inject dashboard bug-report manifest profile operator create-remote-secret validate admin ztunnel-config waypoint : changes the mesh or never ends

tool linkerd
  style pflag
  safe    the mesh's state
  -n --namespace -L --linkerd-namespace re([a-z0-9][a-z0-9.-]{0,62})
  --context             re([A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,200})
  -o --output           enum(table|short|json|basic|wide)
  sub check
    --proxy --pre
    --wait              re([0-9]{1,3}s)
  sub version
    --client --short --proxy
  sub viz
    sub stat
      -A --all-namespaces
      args re([A-Za-z0-9./-]{1,200})*
    sub edges
      args re([A-Za-z0-9./-]{1,200})*
    deny tap top dashboard : follows for ever
  deny inject install uninstall upgrade diagnostics identity profile : changes the mesh

tool helm
  style pflag
  safe    releases, listed
  -n --namespace        re([a-z0-9][a-z0-9.-]{0,62})
  --kube-context        re([A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,200})
  no --kubeconfig --kube-token --kube-apiserver --kube-as-user --post-renderer : carries another identity or starts a program
  sub list ls
    -A --all-namespaces -a --all -q --short --failed --pending --deployed -d --date -r --reverse
    -m --max            int(1..1000)
    -f --filter         re([A-Za-z0-9_.*^$-]{1,80})
    -o --output         enum(table|json|yaml)
  sub history
    --max               int(1..256)
    -o --output         enum(table|json|yaml)
    args name
  sub version
    --short
  deny get status show template : prints values, which may hold credentials
  deny install upgrade uninstall rollback repo plugin push pull package create dependency test lint registry env : changes releases or reads files

tool birdc birdcl
  style words
  safe    routing tables and protocols, shown
  -r -v
  args re(show\x20[a-z0-9A-Z_.:/\x20]{1,120})?
  sub show
    args re([a-z0-9A-Z_.:/'"*-]{1,60})*
  deny configure disable enable restart reload down dump debug echo eval timeformat restrict : changes the service

tool vtysh
  safe    show commands without the configuration
  check vtysh
  -c --command          re([\x20-~]{1,200})
  -d --daemon           name
  no -f --inputfile -b --boot -w --writeconfig -C --dryrun -m --markfile : reads or writes the configuration
  no -e --execute -E --echo : is not on the list

tool gobgp
  style pflag
  safe    neighbours and routes, shown
  -a                    enum(ipv4|ipv6|evpn|vpnv4|vpnv6|ipv4-flowspec)
  sub neighbor
    bare
    args ip? enum(adj-in|adj-out|local)?
  sub global
    sub rib
      -j --json
      bare
      sub summary
      deny add del : changes routes
    deny del policy as : changes settings

tool ovs-vsctl
  style words
  safe    switches and ports, shown
  sub show
  sub list-br
  sub list-ports list-ifaces
    args iface
  sub br-to-vlan br-to-parent port-to-br iface-to-br
    args iface
  --version

tool ovs-ofctl ovs-dpctl
  style words
  safe    flows and ports, shown
  sub show dump-desc dump-tables dump-ports-desc dump-groups dump-meters
    args re([A-Za-z0-9_.@-]{1,64})?
  sub dump-flows dump-ports dump-aggregate
    args re([A-Za-z0-9_.@-]{1,64}) re([a-z0-9_,=.:/*]{1,200})?
  deny monitor snoop : follows for ever

tool ovn-nbctl ovn-sbctl
  style words
  safe    logical network, shown
  sub show
    args name?
  sub ls-list lr-list
  sub lsp-list lrp-list lr-route-list lr-nat-list acl-list lb-list
    args name?

tool (self)
  style getopt
  safe    the product's own read-only verbs, by its exact path
  sub pcap
    --json --frames --no-hash
    --mode              enum(endpoints|baseline)
    --compare           capture
    --fail-on           enum(CRITICAL|HIGH|MEDIUM|LOW|INFO|critical|high|medium|low|info)
    --filter            filter
    # The gate runs it in the case's own directory, where it may leave its reports.
    --semantic-dir --report-dir --plots re(\.)
    no --ai : sends the findings to a model
    need --json : may write a report; add --json
    args capture+
  # Host processes. Sessions lie in the case's own directory (--here), which is the
  # only thing that these verbs write.
  sub agent
    sub plan
      --here
      --port            int(1..65535)
      --pid --pids      re([1-9][0-9]{0,9}(,[1-9][0-9]{0,9}){0,19})
      --since           re([1-9][0-9]{0,4}[smhd]|sess-[0-9]{8}-[0-9]{6}-[a-z0-9]{6})
      --limit           int(1..20)
      --skip            int(1..1000)
      --window          re([2-9]00ms|[1-9]s|10s)
      --session         re(sess-[0-9]{8}-[0-9]{6}-[a-z0-9]{6})
      --format          enum(json|case)
      --exit-code       enum(strict|always0)
      --include-ledger
      need --here : keeps its session elsewhere; add --here
    sub explain
      --here --include-ledger --galaxy-brain --what-if
      --session         re(sess-[0-9]{8}-[0-9]{6}-[a-z0-9]{6})
      --pid             int(1..2147483647)
      --format          enum(json|case)
      need --here : reads sessions elsewhere; add --here
    sub verify
      --here --check-respawn
      --session         re(sess-[0-9]{8}-[0-9]{6}-[a-z0-9]{6})
      --wait            re([0-9]s|[12][0-9]s|30s)
      --exit-code       enum(strict|always0)
      need --here : reads sessions elsewhere; add --here
    sub status report diff
      --here
      --session --base --compare re(sess-[0-9]{8}-[0-9]{6}-[a-z0-9]{6})
      need --here : reads sessions elsewhere; add --here
    deny apply : ends, stops or slows down processes
    deny approve : records an approval
    deny snapshot sessions export capabilities tail : is not needed in a case
  sub classify
    args text+
  sub version
    --json
