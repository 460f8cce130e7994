package redact

import "testing"

// reports are longer pieces of ordinary output: what stands beside a word
// matters as much as the word.
var reports = []family{
	{"kubectl", []string{
		"Name:             checkout-7d9c5b-x2x4z\n" +
			"Namespace:        payments\n" +
			"Priority:         0\n" +
			"Service Account:  default\n" +
			"Node:             aks-nodepool1-12345678-vmss000000/10.240.0.4\n" +
			"Labels:           app=checkout\n" +
			"                  pod-template-hash=7d9c5b\n" +
			"Annotations:      checksum/config: 5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592\n" +
			"Status:           Running\n" +
			"Containers:\n" +
			"  checkout:\n" +
			"    Container ID:   containerd://e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n" +
			"    Image:          registry.example.com/checkout:1.4.2\n" +
			"    Image ID:       registry.example.com/checkout@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n" +
			"    Port:           8080/TCP\n" +
			"    State:          Running\n" +
			"      Started:      Wed, 15 Jan 2025 14:32:00 +0000\n" +
			"    Environment Variables from:\n" +
			"      checkout-env  Secret  Optional: false\n" +
			"    Environment:\n" +
			"      LOG_LEVEL:    info\n" +
			"      DB_PASSWORD:  <set to the key 'password' in secret 'db'>  Optional: false\n" +
			"    Mounts:\n" +
			"      /var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-x2x4z (ro)\n" +
			"Volumes:\n" +
			"  kube-api-access-x2x4z:\n" +
			"    Type:                    Projected (a volume that contains injected data from multiple sources)\n" +
			"    TokenExpirationSeconds:  3607\n" +
			"    ConfigMapName:           kube-root-ca.crt\n" +
			"  tls:\n" +
			"    Type:        Secret (a volume populated by a Secret)\n" +
			"    SecretName:  web-tls\n" +
			"    Optional:    false\n" +
			"QoS Class:                   Burstable\n" +
			"Tolerations:                 node.kubernetes.io/not-ready:NoExecute op=Exists for 300s\n",
		"NAME           TYPE        CLUSTER-IP     EXTERNAL-IP   PORT(S)   AGE\n" +
			"kubernetes     ClusterIP   10.0.0.1       <none>        443/TCP   45d\n" +
			"token-review   ClusterIP   10.0.12.34     <none>        443/TCP   45d\n",
		"NAME                 SECRETS   AGE\n" +
			"default              1         45d\n" +
			"deployment-runner    1         45d\n",
		"apiVersion: v1\n" +
			"kind: ConfigMap\n" +
			"metadata:\n" +
			"  name: app\n" +
			"data:\n" +
			"  app.properties: |\n" +
			"    log.level=info\n" +
			"    cache.key.prefix=app01\n" +
			"  feature: on01\n",
		"Events:\n" +
			"  Type     Reason       Age   From     Message\n" +
			"  ----     ------       ----  ----     -------\n" +
			"  Warning  FailedMount  2m    kubelet  MountVolume.SetUp failed for volume \"tls\" : secret \"web-tls\" not found\n" +
			"  Warning  Unhealthy    1m    kubelet  Readiness probe failed: HTTP probe failed with statuscode: 503\n",
	}},
	{"azure", []string{
		"{\n" +
			"  \"allowBlobPublicAccess\": false,\n" +
			"  \"allowSharedKeyAccess\": false,\n" +
			"  \"encryption\": {\n" +
			"    \"keySource\": \"Microsoft.Storage\",\n" +
			"    \"keyVaultProperties\": null,\n" +
			"    \"requireInfrastructureEncryption\": null\n" +
			"  },\n" +
			"  \"keyCreationTime\": {\n" +
			"    \"key1\": \"2024-11-02T09:14:03.114000+00:00\",\n" +
			"    \"key2\": \"2024-11-02T09:14:03.114000+00:00\"\n" +
			"  },\n" +
			"  \"keyPolicy\": null,\n" +
			"  \"name\": \"nwcaptures\",\n" +
			"  \"sasPolicy\": null\n" +
			"}\n",
		"{\n" +
			"  \"osProfile\": {\n" +
			"    \"adminPassword\": null,\n" +
			"    \"adminUsername\": \"azureuser\",\n" +
			"    \"linuxConfiguration\": {\n" +
			"      \"disablePasswordAuthentication\": true,\n" +
			"      \"ssh\": {\n" +
			"        \"publicKeys\": [\n" +
			"          {\n" +
			"            \"keyData\": \"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQVldprYOrRO441VBOTpD4pWT9nxOkA7fPxeYtmDyOXOtdFlZBs8 azureuser\",\n" +
			"            \"path\": \"/home/azureuser/.ssh/authorized_keys\"\n" +
			"          }\n" +
			"        ]\n" +
			"      }\n" +
			"    },\n" +
			"    \"secrets\": []\n" +
			"  },\n" +
			"  \"vmId\": \"f9dd72b8-9d82-4e4e-a6f1-1e7a99d67cdb\"\n" +
			"}\n",
		"{\n" +
			"  \"connectionType\": \"IPsec\",\n" +
			"  \"authorizationKey\": null,\n" +
			"  \"connectionStatus\": \"NotConnected\",\n" +
			"  \"enableBgp\": false,\n" +
			"  \"ipsecPolicies\": [],\n" +
			"  \"sharedKey\": null,\n" +
			"  \"useLocalAzureIpAddress\": false\n" +
			"}\n",
		"[\n" +
			"  {\n" +
			"    \"access\": \"Deny\",\n" +
			"    \"destinationPortRange\": \"443\",\n" +
			"    \"direction\": \"Inbound\",\n" +
			"    \"etag\": \"W/\\\"98061e64-49f4-47a1-b71b-d2f37b5bca28\\\"\",\n" +
			"    \"name\": \"deny-key-vault\",\n" +
			"    \"priority\": 100\n" +
			"  }\n" +
			"]\n",
		"{\n" +
			"  \"value\": [\n" +
			"    {\n" +
			"      \"category\": \"Administrative\",\n" +
			"      \"operationName\": \"Microsoft.Storage/storageAccounts/listKeys/action\",\n" +
			"      \"status\": \"Succeeded\"\n" +
			"    }\n" +
			"  ]\n" +
			"}\n",
		"Name        Value\n" +
			"----------  ---------\n" +
			"WEBSITE_DNS_SERVER      168.63.129.16\n" +
			"WEBSITE_VNET_ROUTE_ALL  1\n",
		"ERROR: (AuthorizationFailed) The client 'x' with object id '6f1c2a9e-1f53-4c0a-9c1b-1f6a2b3c4d5e' does not have authorization to perform action 'Microsoft.Storage/storageAccounts/listKeys/action'\n",
		"ERROR: AADSTS700082: The refresh token has expired due to inactivity. The token was issued on 2024-10-15T10:00:00.0000000Z\n",
	}},
	{"linux", []string{
		"● sshd.service - OpenSSH server daemon\n" +
			"     Loaded: loaded (/usr/lib/systemd/system/sshd.service; enabled; preset: enabled)\n" +
			"     Active: active (running) since Wed 2025-01-15 14:32:00 UTC; 3 days ago\n" +
			"   Main PID: 991 (sshd)\n" +
			"      Tasks: 1 (limit: 4915)\n" +
			"Jan 15 14:32:00 gw sshd[991]: Server listening on 0.0.0.0 port 22.\n" +
			"Jan 15 14:33:00 gw sshd[1204]: Accepted publickey for ops from 10.0.0.7 port 50123 ssh2: ED25519 SHA256:fPGqUBxwXpydZKTWpVlLUJQaQ4sxziNze499JRJkpnt\n" +
			"Jan 15 14:34:00 gw sshd[1300]: Failed password for root from 10.0.0.9 port 50999 ssh2\n" +
			"Jan 15 14:34:01 gw sshd[1300]: error: maximum authentication attempts exceeded for root from 10.0.0.9 port 50999 ssh2 [preauth]\n",
		"PasswordAuthentication no\n" +
			"PubkeyAuthentication yes\n" +
			"AuthorizedKeysFile .ssh/authorized_keys\n" +
			"ChallengeResponseAuthentication no\n" +
			"HostKey /etc/ssh/ssh_host_ed25519_key\n" +
			"KexAlgorithms curve25519-sha256\n",
		"PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n" +
			"  991 root      20   0   15432   9216   7680 S   0.0   0.1   0:00.12 sshd\n" +
			" 2211 www       20   0  123456  45678   1234 S   1.0   1.2   1:02.03 nginx\n",
		"SHELL=/bin/bash\n" +
			"PWD=/home/ops\n" +
			"LOGNAME=ops\n" +
			"HOME=/home/ops\n" +
			"LANG=C.UTF-8\n" +
			"SSH_CONNECTION=10.0.0.7 50123 10.0.0.4 22\n" +
			"SSH_AUTH_SOCK=/tmp/ssh-XXXXabcd/agent.1204\n" +
			"XDG_SESSION_ID=12\n" +
			"TERM=xterm-256color\n" +
			"OLDPWD=/tmp\n" +
			"KUBECONFIG=/home/ops/.kube/config\n" +
			"PGPASSFILE=/home/ops/.pgpass\n" +
			"VAULT_ADDR=https://vault.example.com:8200\n" +
			"VAULT_TOKEN_FILE=/home/ops/.vault-token\n",
		"[    0.000000] Linux version 6.8.0 (build@host) #1 SMP\n" +
			"[    1.234567] random: crng init done\n" +
			"[    2.345678] Key type dns_resolver registered\n" +
			"[    2.345679] Key type encrypted registered\n" +
			"[    3.456789] Loaded X.509 cert 'Build time autogenerated kernel key: 6a13f8a650396723684b869b111adb22'\n" +
			"[    4.567890] wlan0: authenticate with 00:0d:3a:12:4f:8b\n" +
			"[    4.567891] wlan0: send auth to 00:0d:3a:12:4f:8b (try 1/3)\n",
		"NAME=\"Debian GNU/Linux\"\n" +
			"VERSION_ID=\"12\"\n" +
			"BUG_REPORT_URL=\"https://bugs.debian.org/\"\n",
	}},
	{"network", []string{
		"Interface: wg0\n" +
			"  public key: z3pPjwl/nIG25bAMWSFWF8570wDR3CXkPtpwS041MaN=\n" +
			"  private key: (hidden)\n" +
			"  listening port: 51820\n" +
			"\n" +
			"peer: 3s+eGRRagxmhfKlXfzK994kvzpBuDt+Bg3jI8C7HDhl=\n" +
			"  preshared key: (hidden)\n" +
			"  endpoint: 203.0.113.9:51820\n" +
			"  allowed ips: 10.66.0.2/32\n" +
			"  latest handshake: 1 minute, 2 seconds ago\n" +
			"  transfer: 1.23 MiB received, 4.56 MiB sent\n" +
			"  persistent keepalive: every 25 seconds\n",
		"Security Associations (1 up, 0 connecting):\n" +
			"     branch1[1]: ESTABLISHED 2 hours ago, 10.0.0.1[hub]...203.0.113.9[branch1]\n" +
			"     branch1[1]: IKEv2 SPIs: 1a2b3c4d5e6f7081_i* 9a8b7c6d5e4f3a2b_r, pre-shared key reauthentication in 21 minutes\n" +
			"     branch1[1]: IKE proposal: AES_CBC_256/HMAC_SHA2_256_128/PRF_HMAC_SHA2_256/MODP_2048\n" +
			"     branch1{1}:  INSTALLED, TUNNEL, reqid 1, ESP SPIs: c2c3a9f1_i c1b2a3d4_o\n",
		"R1#show ip ospf interface Gi0/1\n" +
			"GigabitEthernet0/1 is up, line protocol is up\n" +
			"  Internet Address 10.0.0.1/24, Area 0\n" +
			"  Process ID 1, Router ID 1.1.1.1, Network Type BROADCAST, Cost: 10\n" +
			"  Cryptographic authentication enabled\n" +
			"    Youngest key id is 1\n" +
			"    Sending SA: Key 1, Algorithm HMAC-SHA-256 - key chain OSPF\n",
		"hostname edge-1\n" +
			"service password-encryption\n" +
			"aaa new-model\n" +
			"aaa authentication login default group tacacs+ local\n" +
			"aaa authorization exec default group tacacs+ local\n" +
			"!\n" +
			"crypto isakmp policy 10\n" +
			" encr aes 256\n" +
			" authentication pre-share\n" +
			" group 14\n" +
			"!\n" +
			"interface GigabitEthernet0/1\n" +
			" ip address 10.0.0.1 255.255.255.0\n" +
			" ip ospf authentication message-digest\n" +
			"!\n" +
			"snmp-server location Amsterdam\n" +
			"snmp-server contact netops@example.com\n" +
			"snmp-server enable traps bgp\n" +
			"line vty 0 4\n" +
			" login local\n" +
			" transport input ssh\n",
		"BGP routing table entry for 10.40.0.0/16, version 12\n" +
			"Paths: (1 available, best #1, table default)\n" +
			"  64513 64520\n" +
			"    10.99.0.1 from 10.99.0.1 (1.1.1.1)\n" +
			"      Origin IGP, localpref 100, valid, external, best\n" +
			"      Community: 64512:100 64512:200\n" +
			"      Extended Community: RT:64512:100\n" +
			"      Large Community: 64512:1:2\n",
		"SSL handshake has read 4120 bytes and written 412 bytes\n" +
			"Verification: OK\n" +
			"---\n" +
			"New, TLSv1.3, Cipher is TLS_AES_256_GCM_SHA384\n" +
			"Server public key is 2048 bit\n" +
			"Secure Renegotiation IS NOT supported\n" +
			"Early data was not sent\n" +
			"Verify return code: 0 (ok)\n",
		"Certificate:\n" +
			"    Data:\n" +
			"        Version: 3 (0x2)\n" +
			"        Serial Number:\n" +
			"            04:e5:7d:4b:a1:99:c0:0f\n" +
			"        Signature Algorithm: sha256WithRSAEncryption\n" +
			"        Issuer: C = US, O = Example, CN = Example CA\n" +
			"        Subject Public Key Info:\n" +
			"            Public Key Algorithm: rsaEncryption\n" +
			"                Public-Key: (2048 bit)\n" +
			"                Modulus:\n" +
			"                    00:b1:2c:3d:4e:5f\n" +
			"        X509v3 extensions:\n" +
			"            X509v3 Subject Key Identifier: \n" +
			"                A7:1E:46:C2:73:5A:60:73:20:FC:E7:BF:3A:BF:8D:CF:5F:AC:1F:79\n" +
			"            X509v3 Key Usage: critical\n" +
			"                Digital Signature, Key Encipherment\n",
		"> GET /v1/items HTTP/2\n" +
			"> Host: api.example.com\n" +
			"> user-agent: curl/8.5.0\n" +
			"> accept: */*\n" +
			"< HTTP/2 401\n" +
			"< www-authenticate: Bearer realm=\"api\", error=\"invalid_token\", error_description=\"The access token expired\"\n" +
			"< x-request-id: 5d41402abc4b2a76b9719d911017c592\n" +
			"< vary: Authorization, Cookie\n" +
			"{\"error\":\"unauthorized\",\"message\":\"token is missing\"}\n",
		"; <<>> DiG 9.18.24 <<>> example.com\n" +
			";; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 34505\n" +
			";; OPT PSEUDOSECTION:\n" +
			"; EDNS: version: 0, flags:; udp: 1232\n" +
			"; COOKIE: 0123456789abcdef0100000065a5f0c0 (good)\n" +
			";; ANSWER SECTION:\n" +
			"example.com.\t\t300\tIN\tA\t203.0.113.10\n" +
			";; Query time: 12 msec\n",
	}},
	{"logs", []string{
		"2025-01-15T14:32:00Z INFO  auth: user ops logged in method=password mfa=true\n" +
			"2025-01-15T14:32:01Z WARN  auth: invalid token for user ops reason=expired\n" +
			"2025-01-15T14:32:02Z ERROR db: password authentication failed for user \"app\"\n" +
			"2025-01-15T14:32:03Z INFO  cache: key=user:1001 hit=true ttl=30s\n" +
			"2025-01-15T14:32:04Z INFO  token refresh scheduled in 3540s\n" +
			"2025-01-15T14:32:05Z DEBUG loaded 3 secrets from vault path=secret/data/app\n" +
			"2025-01-15T14:32:06Z INFO  rotating api keys older than 90 days\n",
		"level=info ts=2025-01-15T14:32:00Z caller=main.go:120 msg=\"config loaded\" password=*** token=<redacted> path=/etc/app/config.yml\n",
		"{\"level\":\"info\",\"msg\":\"request\",\"method\":\"POST\",\"path\":\"/oauth2/token\",\"status\":200,\"trace\":\"4bf92f3577b34da6a3ce929d0e0e4736\"}\n",
		"10.0.0.7 - - [15/Jan/2025:14:32:00 +0000] \"POST /login HTTP/1.1\" 302 0 \"https://app.example.com/login\" \"Mozilla/5.0\"\n",
		"LOG:  connection authorized: user=app database=orders SSL enabled (protocol=TLSv1.3, cipher=TLS_AES_256_GCM_SHA384, bits=256)\n",
		"Traceback (most recent call last):\n" +
			"  File \"app.py\", line 12, in connect\n" +
			"    raise AuthError(\"password must not be empty\")\n" +
			"AuthError: password must not be empty\n",
	}},
}

// TestReports leaves them alone as a whole, and line by line.
func TestReports(t *testing.T) {
	r := New(Options{})
	for _, f := range reports {
		for _, text := range f.texts {
			if got := r.Redact(text).Text; got != text {
				t.Errorf("%s:\n%s\nbecame\n%s", f.family, text, got)
			}
		}
	}
}
