package words

import (
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A found is a word and the index behind it.
type found struct {
	Word string
	End  int
}

// naive finds words as slowly as can be.
func naive(list []string, text string, exact bool) (out []found) {
	text = "\n" + text // as if a newline stood before
	if !exact {
		text = strings.ToLower(text)
	}
	for end := 1; end <= len(text); end++ {
		for _, w := range list {
			if strings.HasSuffix(text[:end], w) && end > 1 {
				out = append(out, found{w, end - 1})
			}
		}
	}
	return out
}

func all(m *Automaton, list []string, text string) (out []found) {
	m.Each(text, func(w int32, end int) bool {
		out = append(out, found{list[w], end})
		return true
	})
	return out
}

func order(f []found) []found {
	sort.Slice(f, func(i, j int) bool {
		if f[i].End != f[j].End {
			return f[i].End < f[j].End
		}
		return f[i].Word < f[j].Word
	})
	return f
}

func TestAutomaton(t *testing.T) {
	tests := []struct {
		name  string
		words []string
		exact bool
		text  string
	}{
		{"one", []string{"abc"}, true, "xabcx"},
		{"none", []string{"abc"}, true, "ab ab"},
		{"inside each other", []string{"he", "she", "his", "hers"}, true, "ushers his"},
		{"suffixes", []string{"a", "aa", "aaa"}, true, "aaaa"},
		{"any case", []string{"pass"}, false, "PASS Pass pAsS"},
		{"exact case", []string{"Pass"}, true, "PASS Pass pass"},
		{"the same twice", []string{"x", "x"}, true, "axa"},
		{"other bytes", []string{"пароль", "\x00\xff"}, true, "a пароль b\x00\xff"},
		{"line start", []string{"\nkey"}, false, "key\nkey key"},
		{"empty", []string{"x"}, true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want, got := order(naive(tt.words, tt.text, tt.exact)), order(all(New(tt.words, tt.exact), tt.words, tt.text))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAutomatonAgainstNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	letters := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abcAB\n."[r.IntN(7)]
		}
		return string(b)
	}
	for range 300 {
		var list []string
		for range 1 + r.IntN(12) {
			if w := strings.ToLower(letters(1 + r.IntN(4))); !slices.Contains(list, w) {
				list = append(list, w)
			}
		}
		text := letters(60)
		for _, exact := range []bool{true, false} {
			if diff := cmp.Diff(order(naive(list, text, exact)), order(all(New(list, exact), list, text))); diff != "" {
				t.Fatalf("words %q in %q, exact %v (-want +got):\n%s", list, text, exact, diff)
			}
		}
	}
}

func TestAutomatonStops(t *testing.T) {
	n := 0
	New([]string{"a"}, true).Each("aaaa", func(int32, int) bool {
		n++
		return n < 2
	})
	if n != 2 {
		t.Errorf("%d calls after a false, want 2", n)
	}
}

// Labels by what they should come to.
var (
	strong = []string{
		"password",
		"Password",
		"PASSWORD",
		"passwd",
		"passphrase",
		"pwd",
		"pw",
		"pass",
		"db_password",
		"dbPassword",
		"DB_PASSWORD",
		"db.password",
		"db-password",
		"password2",
		"adminPasswordOld",
		"password_hash",
		"passwordPlain",
		"plain-text-password-value",
		"PGPASSWORD",
		"MYSQL_PWD",
		"SMTP_PASS",
		"requirepass",
		"bindpw",
		"rootpw",
		"olcRootPW",
		"userPWD",
		"secret",
		"client_secret",
		"clientSecret",
		"clientsecret",
		"SECRET_KEY",
		"SECRET_KEY_BASE",
		"shared_secret",
		"radiusServerSecret",
		"token",
		"access_token",
		"accessToken",
		"X-Auth-Token",
		"_authToken",
		"identitytoken",
		"psk",
		"wpa_psk",
		"802-11-wireless-security.psk",
		"pre-shared-key",
		"presharedkey",
		"PreSharedKey",
		"api_key",
		"api-key",
		"apikey",
		"apiKey",
		"APIKey",
		"X-API-Key",
		"DD-API-KEY",
		"Ocp-Apim-Subscription-Key",
		"x-functions-key",
		"accountKey",
		"AccountKey",
		"SharedAccessKey",
		"secret_access_key",
		"private_key",
		"PrivateKey",
		"signingKey",
		"encryption_key",
		"authorizationKey",
		"serviceKey",
		"keyMaterial",
		"wep_key0",
		"message-digest-key",
		"authentication-key",
		"masterauth",
		"secretAccess",
		"rocommunity",
		"community",
	}
	weak = []string{
		"auth",
		"redis_auth",
		"primaryKey",
		"secondaryKey",
		"masterKey",
		"storage_key",
		"client-key-data",
		"key1",
		"X-Foo-Key",
		"routing_key",
		"passwords",
		"apiKeys",
		"credentials",
		"token_thing",
	}
	none = []string{
		"",
		"key",
		"keys",
		"name",
		"compass",
		"bypass",
		"passenger",
		"passwordless",
		"tokenizer",
		"monkey",
		"author",
		"authentication",
		"password_policy",
		"passwordPolicy",
		"password-encryption",
		"PasswordAuthentication",
		"password_file",
		"passwordExpires",
		"password_min_length",
		"secretName",
		"secretRef",
		"secretKeyRef",
		"imagePullSecretName",
		"existingSecret",
		"token_type",
		"tokenType",
		"token_endpoint",
		"token-file",
		"tokenReviews",
		"nextPageToken",
		"page_token",
		"continuationToken",
		"public_key",
		"publicKey",
		"PublicKey",
		"partition_key",
		"sort_key",
		"cache_key",
		"foreign_key",
		"idempotency-key",
		"object_key",
		"row-key",
		"recv-keys",
		"host_key",
		"AWS_ACCESS_KEY_ID",
		"AccessKeyId",
		"SharedAccessKeyName",
		"allowSharedKeyAccess",
		"disablePasswordAuthentication",
		"keyPolicy",
		"keyVaultSecretId",
		"private_key_id",
		"psk-flags",
		"send-community",
		"large_community",
		"community-list",
		"auth_type",
		"kid",
		"pw_file",
	}
)

func TestClassify(t *testing.T) {
	check := func(list []string, ok, isWeak bool) {
		for _, s := range list {
			l, got := Classify("", s)
			if got != ok || got && l.Weak != isWeak {
				t.Errorf("Classify(%q) = %+v, %v; want a label %v, weak %v", s, l, got, ok, isWeak)
			}
		}
	}
	check(strong, true, false)
	check(weak, true, true)
	check(none, false, false)
}

func TestClassifyWordBefore(t *testing.T) {
	tests := []struct {
		before, word string
		ok, weak     bool
	}{
		{"private", "key", true, false},
		{"api", "key", true, false},
		{"primary", "key", true, true},
		{"public", "key", false, false},
		{"host", "key", false, false},
		{"sort", "key", false, false},
		{"some", "key", false, false},
		{"shared", "secret", true, false},
		{"page", "token", false, false},
		{"my", "password", true, false},
		{"password", "policy", false, false},
	}
	for _, tt := range tests {
		l, ok := Classify(tt.before, tt.word)
		if ok != tt.ok || ok && l.Weak != tt.weak {
			t.Errorf("Classify(%q, %q) = %+v, %v; want %v, weak %v", tt.before, tt.word, l, ok, tt.ok, tt.weak)
		}
	}
}

func TestNoun(t *testing.T) {
	for s, want := range map[string]Class{"db_password": Pass, "x_token": Token, "client_secret": Secret, "wpa_psk": SharedKey, "api_key": Key, "snmp_community": Community, "redis_auth": Auth} {
		l, ok := Classify("", s)
		if !ok || l.Noun&want == 0 {
			t.Errorf("Classify(%q) = %+v, %v; want the noun %b", s, l, ok, want)
		}
	}
	if l, _ := Classify("", "requirepass"); !l.Compound {
		t.Error("requirepass is a word of its own, and needs no separator")
	}
	if l, _ := Classify("", "password"); l.Compound {
		t.Error("password is English")
	}
}

func TestLongLabels(t *testing.T) {
	if _, ok := Classify("", strings.Repeat("a_", 100)+"password"); !ok {
		t.Error("the last words of a long label count")
	}
	if _, ok := Classify("", strings.Repeat("x", 5000)); ok {
		t.Error("a long word is no label")
	}
}

func BenchmarkClassify(b *testing.B) {
	for b.Loop() {
		for _, s := range strong {
			Classify("", s)
		}
	}
}

func BenchmarkEach(b *testing.B) {
	list := append(append([]string{}, strong...), none[1:]...)
	for i := range list {
		list[i] = strings.ToLower(list[i])
	}
	m := New(list, false)
	text := strings.Repeat("2025-01-15T14:32:00Z gw-1 kernel: eth0 link up, key exchange done, token none\n", 10_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.Each(text, func(int32, int) bool { return true })
	}
}
