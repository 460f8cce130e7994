package metadata

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHost(t *testing.T) {
	for _, h := range []string{
		"169.254.169.254", "169.254.169.254.", "169.254.170.2", "169.254.170.23", "169.254.0.1",
		"2852039166", "0xa9fea9fe", "0xA9FEA9FE", "0251.0376.0251.0376", "025177524776", "169.16689662", "169.254.43518", "0xa9.254.169.254",
		"0xa9.0376.43518", "169.254.0251.0xfe",
		"::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::a9fe:a9fe", "0:0:0:0:0:ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe", "::ffff:0:a9fe:a9fe", "::ffff:0:169.254.169.254", "2002:a9fe:a9fe::1",
		"fe80::a9fe:a9fe", "fe80::a9fe:a9fe%eth0", "fe80::a9fe:a9fe%25eth0", "[::ffff:a9fe:a9fe]", "fe80::5efe:a9fe:a9fe", "2001:db8::200:5efe:a9fe:a9fe",
		"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "FD00:EC2::254", "fd00:42::42",
		"100.100.100.200", "168.63.129.16", "192.0.0.192", "::ffff:168.63.129.16", "64:ff9b::6464:64c8",
		"metadata", "Metadata.Google.Internal", "metadata.google.internal.", "foo.metadata.google.internal", "instance-data", "metadata.goog",
		"metadata.tencentyun.com", "instance-data.ec2.internal", "metadata.azure.internal",
		"%31%36%39.254.169.254", "169.254.169.254.nip.io", "x.169-254-169-254.sslip.io", "a9fea9fe.nip.io", "168-63-129-16.sslip.io",
	} {
		if !Host(h) {
			t.Errorf("Host(%q) = false", h)
		}
	}
	for _, h := range []string{
		"", "example.com", "192.0.2.1", "10.0.0.1", "127.0.0.1", "2001:db8::1", "::1", "fe80::1", "169.253.1.1", "168.63.129.17", "metadata.example.com",
		"my-metadata", "254.169.254.169", "2002:c000:201::1", "64:ff9b::c000:201", "1.2.3.4.5", "0x", "a9fe", "999.1.1.1", "instance-data-1",
	} {
		if Host(h) {
			t.Errorf("Host(%q) = true", h)
		}
	}
}

func TestParseIP(t *testing.T) {
	for in, want := range map[string]string{
		"1.2.3.4": "1.2.3.4", "1.2.3": "1.2.0.3", "1.2": "1.0.0.2", "1": "0.0.0.1", "0": "0.0.0.0", "0x7f.1": "127.0.0.1", "017700000001": "127.0.0.1",
		"2130706433": "127.0.0.1", "0x7f000001": "127.0.0.1", "127.0x1": "127.0.0.1", "1.65535": "1.0.255.255", "::1": "::1", "0x": "0.0.0.0",
	} {
		if got, ok := ParseIP(in); !ok || got.String() != want {
			t.Errorf("ParseIP(%q) = %v, %v, want %s", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "a", "1.2.3.4.5", "256.1.1.1", "1.2.3.256", "08", "0xg", "4294967296", "-1", "1..2", ".", "1.2.3.", "+1", "1_0"} {
		if got, ok := ParseIP(in); ok {
			t.Errorf("ParseIP(%q) = %v", in, got)
		}
	}
}

func TestCredentialPath(t *testing.T) {
	for _, p := range []string{
		"/latest/meta-data/iam/security-credentials/", "/latest/meta-data/iam/info", "/latest//meta-data/./iam/", "/latest/x/../meta-data/iam/",
		"/latest/meta-data/%69am/", "/latest/meta-data/%2569am/", "/LATEST/META-DATA/IAM/", "/latest/api/token",
		"/metadata/identity/oauth2/token?api-version=2018-02-01", "/metadata/Identity", "/computeMetadata/v1/instance/service-accounts/default/token",
		"/machine?comp=goalstate", "/machine/?comp=GoalState", "/vmSettings", "/v2/credentials/abc", "/v1/credentials",
		"/latest/meta-data/ram/security-credentials/x", "/opc/v2/identity/cert.pem", "/latest/meta-data/identity-credentials/ec2/",
		"/machine/x/y?comp=certificates", "/computeMetadata/v1/project/attributes/ssh-keys",
	} {
		if !CredentialPath(p) {
			t.Errorf("CredentialPath(%q) = false", p)
		}
	}
	for _, p := range []string{"", "/", "/latest/meta-data/", "/latest/meta-data/instance-id", "/metadata/instance?api-version=2021-12-13", "/computeMetadata/v1/instance/zone"} {
		if CredentialPath(p) {
			t.Errorf("CredentialPath(%q) = true", p)
		}
	}
}

func TestSplitURL(t *testing.T) {
	for in, want := range map[string][5]string{
		"https://example.com":                   {"https", "", "example.com", "", ""},
		"https://example.com/a?b#c":             {"https", "", "example.com", "", "/a?b#c"},
		"HTTP://Example.com:8080/":              {"http", "", "Example.com", "8080", "/"},
		"example.com/a":                         {"", "", "example.com", "", "/a"},
		"example.com:80":                        {"", "", "example.com", "80", ""},
		"http://u:p@h/":                         {"http", "u:p", "h", "", "/"},
		"http://a@b@h/":                         {"http", "a@b", "h", "", "/"},
		"http://h\\@x/":                         {"http", "", "h", "", "\\@x/"},
		"http://[2001:db8::1]:80/x":             {"http", "", "2001:db8::1", "80", "/x"},
		"http://[::1]":                          {"http", "", "::1", "", ""},
		"http://[::1":                           {"http", "", "[::1", "", ""},
		"http:///h/x":                           {"http", "", "h", "", "/x"},
		"http://h?x":                            {"http", "", "h", "", "?x"},
		"http://h#x":                            {"http", "", "h", "", "#x"},
		"file:///etc/passwd":                    {"file", "", "", "", "/etc/passwd"},
		"FILE:/etc/passwd":                      {"file", "", "", "", "/etc/passwd"},
		"file:etc":                              {"file", "", "", "", "/etc"},
		"1http://x":                             {"", "", "1http", "", "//x"},
		"":                                      {"", "", "", "", ""},
		"http://user@169.254.169.254:80/latest": {"http", "user", "169.254.169.254", "80", "/latest"},
	} {
		scheme, user, host, port, rest := SplitURL(in)
		if d := cmp.Diff(want, [5]string{scheme, user, host, port, rest}); d != "" {
			t.Errorf("SplitURL(%q) (-want +got):\n%s", in, d)
		}
	}
}

// FuzzHost: an address is judged the same in every way to write it.
func FuzzHost(f *testing.F) {
	f.Add(uint32(0xa9fea9fe))
	f.Add(uint32(0xc0000201))
	f.Add(uint32(0x646464c8))
	f.Fuzz(func(t *testing.T, v uint32) {
		a, b, c, d := v>>24, v>>16&255, v>>8&255, v&255
		plain := Host(dotted(a, b, c, d))
		for _, h := range spellings(v) {
			if Host(h) != plain {
				t.Errorf("Host(%q) = %v, but the plain form of the address gives %v", h, !plain, plain)
			}
		}
	})
}
