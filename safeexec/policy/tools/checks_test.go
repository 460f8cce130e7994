package tools

import (
	"strings"
	"testing"
)

// judge runs the lines of a table against the built-in tools: a "+" in front
// means SAFE, a "-" means not.
func judge(t *testing.T, lines string) {
	t.Helper()
	tb := builtin(t, Config{})
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		line = strings.TrimSpace(line)
		want, argv := line[0] == '+', strings.Split(line[2:], " ")
		for i, a := range argv {
			argv[i] = strings.ReplaceAll(a, "_SP_", " ")
		}
		p := tb.Check(argv)
		if (p == nil) != want {
			t.Errorf("%q: SAFE is %v: %v", argv, p == nil, p)
		}
		if p != nil && !strings.HasPrefix(p.Rule, argv[0]+"-") && p.Rule != "unknown-program" {
			t.Errorf("%q: the rule %q does not begin with the program", argv, p.Rule)
		}
	}
}

func TestKubernetesKinds(t *testing.T) {
	judge(t, `
		+ kubectl get pods
		+ kubectl get pods,services
		+ kubectl get pod/a svc/b
		+ kubectl get pod a b
		+ kubectl get deployments.apps
		+ kubectl get deployments.v1.apps -o yaml
		+ kubectl get mycrds.example.com
		+ kubectl get cm
		+ kubectl get cm -o wide
		+ kubectl get cm -o name
		+ kubectl get Pods -o yaml
		- kubectl get
		- kubectl describe
		- kubectl get secret
		- kubectl get secrets a
		- kubectl get SECRET
		- kubectl get pods,secrets
		- kubectl get secrets,pods
		- kubectl get pod/a secret/b
		- kubectl get secrets.v1.
		- kubectl get secrets.v1.core a -o yaml
		- kubectl get externalsecrets
		- kubectl get clustersecretstores
		- kubectl get tokenreviews
		- kubectl get cm -o yaml
		- kubectl get cm,pods -o yaml
		- kubectl get pods,cm -o json
		- kubectl get cm/a pod/b -o json
		- kubectl get mycrds.example.com -o yaml
		- kubectl get mycrds.example.com -o jsonpath={.spec}
		- kubectl describe cm
		- kubectl describe mycrds.example.com a
		- kubectl get pods. ../x
		- kubectl get ,
		- kubectl get pods,,cm -o yaml
	`)
}

func TestTemplates(t *testing.T) {
	judge(t, `
		+ docker inspect -f {{.State.Status}} web
		+ docker inspect -f {{json_SP_.NetworkSettings}} web
		+ docker inspect --format {{.NetworkSettings.IPAddress}} web
		+ docker inspect -f {{range_SP_$k,$v_SP_:=_SP_.NetworkSettings.Networks}}{{$k}}{{$v.IPAddress}}{{end}} web
		+ docker inspect -f {{.HostConfig.NetworkMode}}{{.HostConfig.PortBindings}} web
		+ podman inspect -f {{.State.Pid}} web
		+ docker container inspect -f {{.Name}} web
		- docker inspect web
		- docker inspect -f json web
		- docker inspect -f {{.}} web
		- docker inspect -f {{json_SP_.}} web
		- docker inspect -f {{json_SP_$}} web
		- docker inspect -f {{$}} web
		- docker inspect -f {{.Config.Env}} web
		- docker inspect -f {{.Config}} web
		- docker inspect -f {{index_SP_.Config.Env_SP_0}} web
		- docker inspect -f {{with_SP_.Config}}{{.Env}}{{end}} web
		- docker inspect -f {{.HostConfig}} web
		- docker inspect -f {{.HostConfig.Binds}} web
		- docker inspect -f {{.HostConfig.LogConfig}} web
		- docker inspect -f {{.State.Status}}{{.Config.Env}} web
		- docker inspect -f {{.Mounts}} web
	`)
}

func TestProcesses(t *testing.T) {
	judge(t, `
		+ ps
		+ ps aux
		+ ps -aux
		+ ps auxww
		+ ps -ef
		+ ps -eo pid,cmd
		+ ps -e -o pid,cmd --sort=-pid
		+ ps -p 1
		+ ps -p1
		+ ps 1234
		+ ps axo pid,cmd
		+ ps -ww -ef
		- ps e
		- ps auxe
		- ps -o
		- ps -o pid e
		- ps -o environ
		- ps -o pid,ENVIRON
		- ps -eo pid,cmd e
		- ps -p -o
		- ps --frob
		- ps E
		- ps -E
		- ps auxE
		- ps -o a;b
	`)
}

func TestScopes(t *testing.T) {
	judge(t, `
		+ lsof -i
		+ lsof -p 1
		+ lsof -U
		- lsof
		- lsof -n -P
		+ sysctl a.b
		+ sysctl -a -r net.ipv4.tcp
		- sysctl
		- sysctl -a
		- sysctl -a -r .
		- sysctl -a -r net.ipv6
		- sysctl -a --pattern secret
		+ vtysh -c show_SP_ip_SP_route
		+ vtysh -c show_SP_bgp_SP_summary -c show_SP_version
		- vtysh
		- vtysh -d bgpd
		- vtysh -c conf_SP_t
		- vtysh -c show_SP_running-config
		- vtysh -c show_SP_ip_SP_route -c write
		+ vmstat
		+ vmstat 1 5
		- vmstat 1
		+ systemctl is-active x
		+ systemctl --failed --no-pager
		+ systemctl show x -p ActiveState --no-pager
		- systemctl
		- systemctl --failed
		- systemctl show x --no-pager
		+ nmcli -f NAME,DEVICE connection show
		- nmcli -f wifi-sec.psk connection show x
		- nmcli -g vpn.secrets connection show x
		+ tshark -r a.pcap -T json -J ip
		+ tshark -r a.pcap -T fields -e ip.src
		+ tshark -r a.pcap -T json -e ip.src
		- tshark -r a.pcap -T fields
		- tshark -r a.pcap -T json
		- tshark -r a.pcap -T pdml
		- tshark -c 1
		- tcpdump -n
		+ tcpdump -D
		+ kubectl logs x --tail 5
		+ kubectl logs -l a=b --tail 5
		- kubectl logs --tail 5
		- kubectl logs x
	`)
}
