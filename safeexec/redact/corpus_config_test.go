package redact

import (
	"math/rand/v2"
	"testing"
)

// configs are whole files: every secret in them goes, and every other
// character stays, whatever stands beside what.
var configs = []family{
	{"cisco", []string{
		"hostname edge-1\n" +
			"service password-encryption\n" +
			"enable secret 5 ⟦$1$‹A4›$‹A22›⟧\n" +
			"username ops privilege 15 secret 9 ⟦$9$‹A14›$‹A43›⟧\n" +
			"username guest password 7 ‹X20›\n" +
			"aaa new-model\n" +
			"tacacs server T1\n" +
			" address ipv4 10.0.0.20\n" +
			" key 7 ‹X20›\n" +
			"crypto isakmp policy 10\n" +
			" encr aes 256\n" +
			" authentication pre-share\n" +
			"crypto isakmp key ‹W› address 203.0.113.9\n" +
			"interface Gi0/1\n" +
			" ip address 10.0.0.1 255.255.255.0\n" +
			" ip ospf message-digest-key 1 md5 7 ‹X18›\n" +
			" ip ospf cost 10\n" +
			" standby 1 authentication md5 key-string ‹W›\n" +
			"router bgp 64512\n" +
			" neighbor 10.99.0.2 remote-as 64513\n" +
			" neighbor 10.99.0.2 password ‹W›\n" +
			" neighbor 10.99.0.2 send-community both\n" +
			"snmp-server community ‹R› RO 10\n" +
			"snmp-server location Amsterdam\n" +
			"snmp-server host 10.0.0.5 version 2c ‹R›\n" +
			"ntp authentication-key 1 md5 ‹X18› 7\n" +
			"ntp server 10.0.0.123\n" +
			"line vty 0 4\n" +
			" password 7 ‹X20›\n" +
			" login\n" +
			" transport input ssh\n",
	}},
	{"juniper", []string{
		"system {\n" +
			"    host-name r1;\n" +
			"    root-authentication {\n" +
			"        encrypted-password \"⟦$6$‹A8›$‹A86›⟧\"; ## SECRET-DATA\n" +
			"    }\n" +
			"    radius-server {\n" +
			"        10.0.0.21 secret \"⟦$9$‹A24›⟧\"; ## SECRET-DATA\n" +
			"    }\n" +
			"}\n" +
			"protocols {\n" +
			"    bgp {\n" +
			"        group ext {\n" +
			"            type external;\n" +
			"            authentication-key \"⟦$9$‹A24›⟧\"; ## SECRET-DATA\n" +
			"            neighbor 10.99.0.1;\n" +
			"        }\n" +
			"    }\n" +
			"}\n" +
			"snmp {\n" +
			"    community ‹R› {\n" +
			"        authorization read-only;\n" +
			"    }\n" +
			"}\n",
	}},
	{"fortinet", []string{
		"config system admin\n" +
			"    edit \"admin\"\n" +
			"        set accprofile \"super_admin\"\n" +
			"        set password ENC ‹A60›\n" +
			"    next\n" +
			"end\n" +
			"config vpn ipsec phase1-interface\n" +
			"    edit \"to-branch1\"\n" +
			"        set interface \"wan1\"\n" +
			"        set psksecret ENC ‹A60›\n" +
			"        set dhgrp 14\n" +
			"    next\n" +
			"end\n",
	}},
	{"mikrotik", []string{
		"/interface wireless security-profiles\n" +
			"add name=guest wpa2-pre-shared-key=‹R› mode=dynamic-keys\n" +
			"/ppp secret\n" +
			"add name=branch1 password=‹W› service=l2tp\n" +
			"/snmp community\n" +
			"set [ find default=yes ] addresses=10.0.0.0/8\n",
	}},
	{"strongswan", []string{
		"connections {\n" +
			"  branch1 {\n" +
			"    version = 2\n" +
			"    local { auth = psk }\n" +
			"    remote { auth = psk }\n" +
			"  }\n" +
			"}\n" +
			"secrets {\n" +
			"  ike-branch1 {\n" +
			"    id = branch1\n" +
			"    secret = \"‹P›\"\n" +
			"  }\n" +
			"  eap-bob {\n" +
			"    id = bob\n" +
			"    secret = ‹W›\n" +
			"  }\n" +
			"}\n",
		"# ipsec.secrets\n" +
			"10.0.0.1 203.0.113.9 : PSK \"‹W›\"\n" +
			"%any : PSK \"‹P›\"\n" +
			": RSA moon.pem \"‹W›\"\n" +
			"alice : EAP \"‹R›\"\n",
	}},
	{"radius and wifi", []string{
		"client localhost {\n" +
			"  ipaddr = 127.0.0.1\n" +
			"  secret = ‹W›\n" +
			"  require_message_authenticator = no\n" +
			"  shortname = local\n" +
			"}\n" +
			"bob Cleartext-Password := \"‹W›\"\n" +
			"    Reply-Message = \"Hello\"\n",
		"interface=wlan0\n" +
			"ssid=lab\n" +
			"wpa=2\n" +
			"wpa_key_mgmt=WPA-PSK\n" +
			"wpa_passphrase=‹W›\n" +
			"auth_server_addr=10.0.0.21\n" +
			"auth_server_shared_secret=‹R›\n",
		"ctrl_interface=/run/wpa_supplicant\n" +
			"network={\n" +
			"\tssid=\"corp\"\n" +
			"\tkey_mgmt=WPA-EAP\n" +
			"\tidentity=\"bob\"\n" +
			"\tpassword=\"‹W›\"\n" +
			"\tphase2=\"auth=MSCHAPV2\"\n" +
			"}\n",
	}},
	{"routing daemons", []string{
		"hostname r1\n" +
			"password ‹R›\n" +
			"enable password ‹R›\n" +
			"router bgp 64512\n" +
			" neighbor 10.99.0.1 remote-as 64513\n" +
			" neighbor 10.99.0.1 password ‹W›\n" +
			"interface eth0\n" +
			" ip ospf authentication message-digest\n" +
			" ip ospf message-digest-key 1 md5 ‹R›\n",
		"protocol bgp peer1 {\n" +
			"  local as 64512;\n" +
			"  neighbor 10.99.0.1 as 64513;\n" +
			"  password \"‹W›\";\n" +
			"}\n",
		"vrrp_instance VI_1 {\n" +
			"  state MASTER\n" +
			"  virtual_router_id 51\n" +
			"  authentication {\n" +
			"    auth_type PASS\n" +
			"    auth_pass ‹W›\n" +
			"  }\n" +
			"}\n",
		"agentAddress udp:161\n" +
			"rocommunity ‹R› 10.0.0.0/8\n" +
			"com2sec readonly default ‹R›\n" +
			"createUser netmon SHA \"‹W›\" AES \"‹R›\"\n" +
			"rouser netmon priv\n" +
			"sysLocation Amsterdam\n",
		"[Interface]\n" +
			"Address = 10.66.0.1/24\n" +
			"PrivateKey = ‹B32›\n" +
			"ListenPort = 51820\n" +
			"[Peer]\n" +
			"PublicKey = z3pPjwl/nIG25bAMWSFWF8570wDR3CXkPtpwS041MaN=\n" +
			"PresharedKey = ‹B32›\n" +
			"AllowedIPs = 10.66.0.2/32\n",
	}},
	{"services", []string{
		"services:\n" +
			"  db:\n" +
			"    image: postgres:16\n" +
			"    environment:\n" +
			"      POSTGRES_USER: app\n" +
			"      POSTGRES_PASSWORD: ‹W›\n" +
			"    volumes:\n" +
			"      - db:/var/lib/postgresql/data\n" +
			"  web:\n" +
			"    environment:\n" +
			"      - DATABASE_URL=postgres://app:‹R›@db:5432/app\n" +
			"      - SECRET_KEY=‹H64›\n" +
			"      - LOG_LEVEL=info\n" +
			"    secrets:\n" +
			"      - api_key\n",
		"global:\n" +
			"  slack_api_url: 'https://hooks.slack.com/services/⟦T0/B0/‹A24›⟧'\n" +
			"  smtp_smarthost: 'smtp.example.com:587'\n" +
			"  smtp_auth_username: 'alerts'\n" +
			"  smtp_auth_password: '‹W›'\n" +
			"receivers:\n" +
			"- name: pager\n" +
			"  pagerduty_configs:\n" +
			"  - service_key: ‹H32›\n",
		"scrape_configs:\n" +
			"- job_name: api\n" +
			"  basic_auth:\n" +
			"    username: prom\n" +
			"    password: ‹W›\n" +
			"- job_name: k8s\n" +
			"  bearer_token_file: /var/run/secrets/kubernetes.io/serviceaccount/token\n" +
			"  bearer_token: ‹L›\n",
		"spring:\n" +
			"  datasource:\n" +
			"    url: jdbc:postgresql://db:5432/app\n" +
			"    username: app\n" +
			"    password: ‹W›\n" +
			"  rabbitmq:\n" +
			"    host: mq\n" +
			"    password: \"‹R›\"\n" +
			"jwt:\n" +
			"  secret: ‹B48›\n" +
			"  expiration: 3600\n",
		"[client]\n" +
			"user = app\n" +
			"password = \"‹W›\"\n" +
			"host = db.example.com\n" +
			"[mysqldump]\n" +
			"single-transaction\n",
		"port 6379\n" +
			"requirepass ‹R›\n" +
			"masterauth ‹R›\n" +
			"maxmemory 2gb\n",
		"global\n" +
			"  log /dev/log local0\n" +
			"userlist ops\n" +
			"  user bob password ⟦$5$‹A8›$‹A43›⟧\n" +
			"  user eve insecure-password ‹W›\n" +
			"listen stats\n" +
			"  stats auth admin:‹W›\n",
		"APP_ENV=production\n" +
			"DB_HOST=db\n" +
			"DB_PASSWORD=‹R›\n" +
			"REDIS_PASSWORD=null\n" +
			"MAIL_PASSWORD='‹Y›'\n" +
			"AWS_ACCESS_KEY_ID=\n" +
			"AWS_SECRET_ACCESS_KEY=‹A40›\n" +
			"STRIPE_SECRET=⟦sk¦_live_‹A24›⟧\n" +
			"PUSHER_APP_ID=12\n",
		"[all:vars]\n" +
			"ansible_user=ops\n" +
			"ansible_password=‹W›\n" +
			"ansible_become_password=‹W›\n" +
			"ansible_port=22\n" +
			"[web]\n" +
			"web-01 ansible_host=10.0.0.4 ansible_ssh_pass=‹R›\n",
		"db_password = \"‹W›\"\n" +
			"db_username = \"app\"\n" +
			"region      = \"westeurope\"\n" +
			"api_tokens  = [\"‹L›\", \"‹L›\"]\n",
		"<configuration>\n" +
			"  <connectionStrings>\n" +
			"    <add name=\"Main\" connectionString=\"Server=db;Database=app;User Id=app;Password=‹W›;Encrypt=True\" />\n" +
			"  </connectionStrings>\n" +
			"  <appSettings>\n" +
			"    <add key=\"ApiKey\" value=\"‹L›\" />\n" +
			"    <add key=\"Mode\" value=\"prod\" />\n" +
			"  </appSettings>\n" +
			"</configuration>\n",
		"apiVersion: v1\n" +
			"kind: Config\n" +
			"clusters:\n" +
			"- cluster:\n" +
			"    server: https://aks1.example.com:443\n" +
			"  name: aks1\n" +
			"users:\n" +
			"- name: admin\n" +
			"  user:\n" +
			"    client-key-data: ‹B120›\n" +
			"    token: ‹L›\n" +
			"current-context: aks1\n",
		"{\n" +
			"  \"auths\": {\n" +
			"    \"r.example.com\": {\n" +
			"      \"auth\": \"⟦ZGVwbG95¦OlF1YXJ0ejM2ODl4‹A4›⟧\"\n" +
			"    }\n" +
			"  }\n" +
			"}\n",
		"[outputs.influxdb_v2]\n" +
			"  urls = [\"http://10.0.0.9:8086\"]\n" +
			"  token = \"‹L›\"\n" +
			"  organization = \"net\"\n" +
			"[[inputs.snmp]]\n" +
			"  agents = [\"udp://10.0.0.254:161\"]\n" +
			"  community = \"‹R›\"\n" +
			"  auth_password = \"‹W›\"\n" +
			"  priv_password = \"‹W›\"\n",
	}},
}

// TestConfigs fills and redacts them, masking nothing else.
func TestConfigs(t *testing.T) {
	r := New(Options{})
	m := maker{rand.New(rand.NewPCG(21, 22))}
	for _, f := range configs {
		for _, tmpl := range f.texts {
			for range 8 {
				if p := try(r, m, tmpl, false); p != "" {
					t.Errorf("%s: %s", f.family, p)
					break
				}
			}
		}
	}
}
