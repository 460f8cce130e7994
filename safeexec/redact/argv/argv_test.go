package argv

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][][]string{
		"":                                    nil,
		"az vm list":                          {{"az", "vm", "list"}},
		"kubectl get -o 'jsonpath={.a b}' x":  {{"kubectl", "get", "-o", "jsonpath={.a b}", "x"}},
		`a "b 'c'" d\ e`:                      {{"a", "b 'c'", "d e"}},
		"a b | c && d; e":                     {{"a", "b"}, {"c"}, {"d"}, {"e"}},
		"a '|' b":                             {{"a", "|", "b"}},
		"sh -c \"wg genkey | tee private.k\"": {{"sh", "-c", "wg genkey | tee private.k"}},
		"a 'open":                             {{"a", "open"}},
	} {
		if diff := cmp.Diff(want, Split(line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		words, path string
		want        bool
	}{
		{"get secret db", "get secret|secrets", true},
		{"-n prod get secret db", "get secret", true},
		{"get -n prod secrets", "get secret|secrets", true},
		{"-n get get secret", "get secret", true},
		{"get pods -l secret", "get secret", false},
		{"get pods secret", "get secret", false},
		{"get secret/db", "get secret/*", true},
		{"storage account keys list", "** keys list", true},
		{"keys", "** keys list", false},
		{"storage account list", "** keys list", false},
		{"ssm get-parameter --name x --with-decryption", "ssm get-parameter* +--with-decryption", true},
		{"ssm get-parameter --name x", "ssm get-parameter* +--with-decryption", false},
		{"show wg0 private-key", "show * private-key", true},
		{"", "get", false},
		{"x", "", true},
	} {
		if got := Match(strings.Fields(tt.words), strings.Fields(tt.path)); got != tt.want {
			t.Errorf("Match(%q, %q) = %v", tt.words, tt.path, got)
		}
	}
}

func TestPrinted(t *testing.T) {
	for line, want := range map[string]Output{
		"":           Unknown,
		"az vm list": Unknown,
		"az network vpn-connection shared-key show -g rg --connection-name c":                Fields,
		"az network vpn-connection shared-key show -g rg --connection-name c -o tsv":         Cells,
		"az network vpn-connection shared-key show -g rg -otsv":                              Cells,
		"az keyvault secret show -n db --query value":                                        Cells,
		"az keyvault secret show -n db --query id -o tsv":                                    Fields,
		"az keyvault secret show -n db --query '[id, attributes.enabled]' -o tsv":            Fields,
		"az keyvault secret show -n db --query '{n:name,v:value}' -o tsv":                    Cells,
		"az keyvault key show -n k":                                                          Unknown,
		"AZ keyvault SECRET show":                                                            Fields,
		"/usr/bin/az account get-access-token --query accessToken -o tsv":                    Cells,
		"sudo -u root wg show wg0 private-key":                                               Last,
		"az network express-route show -n e --query serviceProviderProvisioningState -o tsv": Fields,
		"wg show wg0 public-key":                                                             Unknown,
		"kubectl -n prod get secret db":                                                      Fields,
		"kubectl -n prod get secret db -o jsonpath={.data.password}":                         Cells,
		"kubectl get secrets -o jsonpath='{.items[*].metadata.name}'":                        Fields,
		"kubectl get secret -o custom-columns=NAME:.metadata.name":                           Fields,
		"kubectl get pods -o jsonpath={.items[0].spec}":                                      Unknown,
		"kubectl exec web-0 -- printenv DB_PASSWORD":                                         Bare,
		"kubectl exec web-0 -- printenv HOME":                                                Fields,
		"terraform -chdir=infra output -raw db_password":                                     Bare,
		"terraform output -raw vpc_id":                                                       Fields,
		"gcloud secrets versions access latest --secret=db":                                  Bare,
		"gcloud --project p secrets versions list db":                                        Unknown,
		"aws --region eu-west-1 secretsmanager get-secret-value --secret-id x --output text": Cells,
		"aws secretsmanager list-secrets --output text":                                      Unknown,
		"redis-cli -h h config get requirepass":                                              Pairs,
		"bash -c 'wg genkey | tee k'":                                                        Bare,
		"PASSWORD_STORE_DIR=/x pass show db/prod":                                            Bare,
		"grep secret /var/log/pass show":                                                     Unknown,
		"nmcli -s -g 802-11-wireless-security.psk con show corp":                             Cells,
		"nmcli con show corp":                                                                Unknown,
		"C:\\tools\\az.cmd acr credential show -n r":                                         Fields,
		"docker inspect --format '{{.State.Status}}' web":                                    Fields,
	} {
		if got := Printed(line); got != want {
			t.Errorf("Printed(%q) = %d, want %d", line, got, want)
		}
	}
}
