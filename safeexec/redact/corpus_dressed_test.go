package redact

// dressedTemplates hold secrets with something between them and what announces
// them: a literal's prefix, a type, another word. A mark on that with the secret
// beside it would say that the secret is gone.
var dressedTemplates = []family{
	{"lists of settings", []string{
		"password\t‹R›\nhost\tdb1\n",
		"password,‹R›\nhost,db1\n",
		"password;‹R›\nuser;app\nport;5432\n",
		"token\t‹L›\nexpires\t3600\n",
		"api_token,‹L›\nregion,eu-west-1\n",
		"secret\t‹R›\ntoken\t‹L›\n",
		"Name,Password,IPv4Address\nroot,‹R›,192.0.2.1\n",
	}},
	{"literals", []string{
		"ALTER LOGIN app WITH PASSWORD = N'‹R›', CHECK_POLICY = ON\n",
		"password = r\"‹R›\"\n",
		"password = f'‹R›'\n",
		"'password': '⟦ab''‹R›⟧'\n",
		"password: !!str ‹R›\n",
		"password: !!binary ‹B18›\n",
		"password: ! \"‹R›\"\n",
		"Password: (string) (len=14) \"‹R›\",\n",
		"password: Some(\"‹R›\")\n",
		"Config { host: \"db\", password: Some(Secret(\"‹R›\")) }\n",
		"[\"password\"]=> string(14) \"‹R›\"\n",
		"  [\"password\"]=>\n  string(14) \"‹R›\"\n",
		"{default_pass,<<\"‹R›\">>}\n",
		"[{password,\"‹R›\"}]\n",
		"api_key = \"\"\"‹L›\"\"\"\n",
		"secret = '''\n‹L›'''\n",
		"password = <<EOT\n‹R›\nEOT\nport = 5432\n",
		"password = <<-EOF\n    ‹R›\n  EOF\n",
	}},
	{"private numbers", []string{
		"Private-Key: (256 bit)\npriv:\n    ⟦1d:ad:be:ef:00:11:‹H2›:33:44:55:66:77:88:99:aa:\n    0b:11⟧\npub:\n    04:08:a7:c1\n",
		"publicExponent: 65537 (0x10001)\nprivateExponent:\n    ⟦00:ad:be:ef:00:11:‹H2›:33:44:55:66:77:88:99:aa:\n    0b:11:aa⟧\nprime1:\n    ⟦00:be:ef:‹H2›⟧\n",
		"PrivateExponent: ‹B64›\nPrime1: ‹B32›\n",
	}},
	{"other words between", []string{
		"snmp-server host inside 192.0.2.1 community ‹W› version 2c\n",
		"snmp-server host inside 192.0.2.1 poll community 0 ‹W› version 2c udp-port 162\n",
		"snmp-server host 192.0.2.1 vrf MGMT version 2c ‹W›\n",
		"snmp-server host 192.0.2.1 traps version 2c ‹W› udp-port 162\n",
		"net use \\\\fs1\\share ‹R› /user:CORP\\svc\n",
		"net use Z: \\\\fs1\\share /user:CORP\\svc ‹R›\n",
		"pulumi config set --secret dbPassword ‹R›\n",
	}},
}

// dressedBenign looks like the above.
var dressedBenign = []family{
	{"usages", []string{
		"Usage: app --password=PASSWORD [--token=TOKEN]\n",
		"  --api-key API_KEY   the key\n",
		"Usage: mysql [-p PASSWORD] [--password=name]\n",
		"    token: \"\"\"The token of a user.\"\"\"\n",
		"error: password: (see the manual)\n",
	}},
	{"names of secrets", []string{
		"level=error msg=\"failed to get secret\" secret=default/db-creds err=\"not found\"\n",
		"secret: kube-system/web-tls\n",
		"arn:aws:secretsmanager:eu-west-1:123456789012:secret:db/prod-ZsPebU\n",
		"  password = random_password.db.result\n",
		"  password = aws_ssm_parameter.db[0].value\n",
		"  token = data_source_x.main.token\n",
	}},
	{"protocols", []string{
		"  community: 64512:100 64512:200\n  extcommunity: RT:64512:1\n",
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n",
		"{\"@odata.nextLink\":\"https://graph.example.com/v1.0/users?$skiptoken=bg9ZNbwivcsw3oaKCSBxtElP\"}\n",
		"\"NextToken\": \"OBdHC2gfY0Fh0VXAwPWyM3NUrwvrCsgH\"\n",
		"redis key session:42 type hash\n",
		"authkey fingerprint 02718e83e1dab80f01bee92b555af55a998570ee\n",
		"Supports Wake-on: pumbg\nWake-on: d\nSecureOn password: 00:00:00:00:00:00\n",
		"RSA Private-Key: (2048 bit, 2 primes)\n",
		"net use\nNew connections will be remembered.\n",
		"net use Z: /delete\n",
		"net use of memory has grown\n",
		"snmp-server host 192.0.2.1 informs\n",
	}},
}
