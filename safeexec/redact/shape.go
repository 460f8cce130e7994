package redact

import (
	"encoding/base64"
	"strings"
)

// A vendor's token: a prefix in exact case, then at least min characters of
// set. The table is the shapes that the vendors document, and those that the
// default rules of gitleaks 8 (MIT) list; a wrong row costs a false alarm, so
// each prefix is one that no word begins with.
type vendor struct {
	prefix string
	set    *[256]bool
	min    int
}

// Character sets of tokens.
var (
	setAlnum   = byteSet(alphabet)
	setWord    = byteSet(alphabet + "_")
	setURL     = byteSet(alphabet + "_-")
	setDotted  = byteSet(alphabet + "_-.")
	setBase64  = byteSet(alphabet + "+/=_-")
	setHex     = byteSet("0123456789abcdefABCDEF-")
	setUpper   = byteSet("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
	setAny     = byteSet(alphabet + "+/=_-.~:|%")
	setSegment = byteSet(alphabet + "+/=_-.~%@")
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// vendors is the reviewed table.
var vendors = []vendor{
	// code hosting and packages
	{"ghp_", &setAlnum, 16}, {"gho_", &setAlnum, 16}, {"ghu_", &setAlnum, 16}, {"ghs_", &setAlnum, 16}, {"ghr_", &setAlnum, 16}, {"github_pat_", &setWord, 20},
	{"glpat-", &setDotted, 16}, {"gldt-", &setURL, 16}, {"glrt-", &setURL, 16}, {"glcbt-", &setURL, 16}, {"glptt-", &setURL, 16}, {"glft-", &setURL, 16},
	{"glsoat-", &setURL, 16}, {"glimt-", &setURL, 16}, {"glagent-", &setURL, 16}, {"gloas-", &setURL, 16}, {"glffct-", &setURL, 16},
	{"GR1348941", &setURL, 16}, {"ATATT3", &setBase64, 20}, {"ATCTT3", &setBase64, 20}, {"ATBB", &setAlnum, 24}, {"npm_", &setAlnum, 30}, {"pypi-AgE", &setURL, 16},
	{"rubygems_", &setAlnum, 24}, {"oy2", &setAlnum, 40}, {"CLOJARS_", &setAlnum, 40}, {"cio", &setAlnum, 32}, {"bkua_", &setAlnum, 24}, {"CCIPAT_", &setWord, 20},
	{"sqp_", &setAlnum, 30}, {"squ_", &setAlnum, 30}, {"sqa_", &setAlnum, 30}, {"AKCp", &setAlnum, 40}, {"cmVmdGtu", &setAlnum, 32}, {"dckr_pat_", &setURL, 16},
	{"dckr_oat_", &setURL, 16}, {"sgp_", &setWord, 30},
	// chat and mail
	{"xoxb-", &setURL, 10}, {"xoxp-", &setURL, 10}, {"xoxa-", &setURL, 10}, {"xoxr-", &setURL, 10}, {"xoxs-", &setURL, 10}, {"xoxo-", &setURL, 10}, {"xoxc-", &setURL, 10},
	{"xoxd-", &setAny, 10}, {"xoxe-", &setURL, 10}, {"xoxe.", &setDotted, 10}, {"xapp-", &setURL, 10}, {"xwfp-", &setURL, 10}, {"SG.", &setDotted, 30}, {"xkeysib-", &setURL, 30},
	{"key-", &setAlnum, 32}, {"syt_", &setWord, 20},
	// clouds
	{"AKIA", &setUpper, 16}, {"ASIA", &setUpper, 16}, {"ABIA", &setUpper, 16}, {"ACCA", &setUpper, 16}, {"ABSK", &setBase64, 40}, {"bedrock-api-key-", &setBase64, 30},
	{"AIza", &setURL, 30}, {"ya29.", &setDotted, 16}, {"GOCSPX-", &setURL, 16}, {"1//0", &setURL, 30}, {"LTAI", &setAlnum, 14}, {"AKID", &setAlnum, 30},
	{"dop_v1_", &setAlnum, 30}, {"doo_v1_", &setAlnum, 30}, {"dor_v1_", &setAlnum, 30}, {"HRKU-", &setURL, 30}, {"fo1_", &setURL, 30}, {"fm1r_", &setBase64, 30}, {"fm2_", &setBase64, 30},
	{"nfp_", &setAlnum, 30}, {"sbp_", &setAlnum, 30}, {"pscale_tkn_", &setDotted, 20}, {"pscale_pw_", &setDotted, 20}, {"pscale_oauth_", &setDotted, 20}, {"napi_", &setAlnum, 30},
	{"rnd_", &setAlnum, 28}, {"vercel_", &setAlnum, 20}, {"v1.0-", &setHex, 40}, {"SCWSECRET", &setAlnum, 8}, {"AQVN", &setURL, 35}, {"t1.9eu", &setDotted, 40},
	// infrastructure
	{"hvs.", &setURL, 20}, {"hvb.", &setURL, 20}, {"hvr.", &setURL, 20}, {".atlasv1.", &setURL, 20}, {"pul-", &setHex, 30}, {"tskey-", &setURL, 12}, {"dnkey-", &setURL, 20},
	{"NRAK-", &setAlnum, 20}, {"NRJS-", &setAlnum, 16}, {"NRII-", &setURL, 20}, {"NRRA-", &setAlnum, 20}, {"NRSP-", &setAlnum, 20}, {"glsa_", &setWord, 20}, {"glc_", &setBase64, 30},
	{"eyJrIjoi", &setBase64, 40}, {"sntrys_", &setBase64, 30}, {"sntryu_", &setAlnum, 30}, {"dt0c01.", &setDotted, 30}, {"dt0s", &setDotted, 40}, {"dapi", &setHex, 32},
	{"dp.pt.", &setAlnum, 30}, {"dp.st.", &setDotted, 30}, {"dp.ct.", &setAlnum, 30}, {"dp.sa.", &setAlnum, 30}, {"dp.scim.", &setAlnum, 30}, {"dp.audit.", &setAlnum, 30},
	{"ops_eyJ", &setBase64, 40}, {"AGE-SECRET-KEY-1", &setUpper, 40}, {"sha256~", &setURL, 30}, {"pnu_", &setAlnum, 30}, {"ico-", &setAlnum, 30}, {"_mmk", &setAlnum, 0},
	{"sdk-", &setHex, 36}, {"mob-", &setHex, 36}, {"API-", &setUpper, 24}, {"pat.", &setDotted, 50}, {"aio_", &setAlnum, 26}, {"essu_", &setBase64, 30},
	// machine learning
	{"sk-proj-", &setURL, 20}, {"sk-svcacct-", &setURL, 20}, {"sk-admin-", &setURL, 20}, {"sk-ant-", &setURL, 20}, {"sk-or-", &setURL, 20}, {"sk-lf-", &setURL, 20}, {"sk-", &setAlnum, 20}, {"hf_", &setAlnum, 30},
	{"api_org_", &setAlnum, 30}, {"gsk_", &setAlnum, 30}, {"xai-", &setAlnum, 40}, {"pplx-", &setAlnum, 40}, {"r8_", &setAlnum, 30}, {"nvapi-", &setURL, 30}, {"lsv2_", &setWord, 30},
	{"csk-", &setAlnum, 40}, {"fw_", &setAlnum, 22}, {"tgp_v1_", &setURL, 30},
	// applications
	{"sk_live_", &setAlnum, 10}, {"sk_test_", &setAlnum, 10}, {"rk_live_", &setAlnum, 10}, {"rk_test_", &setAlnum, 10}, {"whsec_", &setBase64, 20}, {"shpat_", &setAlnum, 30},
	{"shpss_", &setAlnum, 30}, {"shpca_", &setAlnum, 30}, {"shppa_", &setAlnum, 30}, {"EAAA", &setURL, 40}, {"sq0atp-", &setURL, 20}, {"sq0csp-", &setURL, 30}, {"EAAC", &setAlnum, 60},
	{"access_token$production$", &setAlnum, 20}, {"lin_api_", &setAlnum, 30}, {"lin_oauth_", &setAlnum, 30}, {"ntn_", &setAlnum, 30}, {"secret_", &setAlnum, 40}, {"figd_", &setURL, 30},
	{"figu_", &setURL, 30}, {"PMAK-", &setURL, 30}, {"PMAT-", &setURL, 20}, {"CFPAT-", &setURL, 30}, {"duffel_live_", &setURL, 30}, {"duffel_test_", &setURL, 30}, {"EZAK", &setAlnum, 50},
	{"EZTK", &setAlnum, 50}, {"FLWSECK-", &setURL, 20}, {"FLWSECK_TEST-", &setURL, 20}, {"shippo_live_", &setAlnum, 30}, {"tfp_", &setDotted, 40}, {"rdme_", &setAlnum, 40},
	{"phx_", &setAlnum, 30}, {"fio-u-", &setURL, 30}, {"hubspot-", &setHex, 36}, {"pat-na1-", &setHex, 30}, {"pat-eu1-", &setHex, 30}, {"sl.", &setURL, 120}, {"AAAAAAAAAAAAAAAAAAAAA", &setAny, 40},
	{"dG9rO", &setBase64, 40}, {"ntf_", &setAlnum, 30}, {"apify_api_", &setAlnum, 20}, {"kgl_", &setAlnum, 30}, {"waka_", &setHex, 36}, {"SSWS ", &setURL, 30}, {"sess-", &setAlnum, 40}, {":AA", &setURL, 30},
}

// vendor masks a token with a known prefix that ends before b.
func (s *scanner) vendor(v *vendor, a, b int) {
	t := s.t
	if a < s.tokenDone || t[a:b] != v.prefix {
		return
	}
	inner := !alnum(v.prefix[0]) // the prefix stands in the middle of the token
	if !inner && a > 0 && (alnum(t[a-1]) || t[a-1] == '_') {
		return
	}
	end := s.run(b, v.set, 4096)
	for end > b && (t[end-1] == '.' || t[end-1] == '-' && t[end-2] == '-') {
		end--
	}
	start := a
	if inner {
		start = s.runBack(a, &setWord, 64)
		if a-start < 8 {
			return
		}
	}
	if end-b < v.min && !(end-b >= 8 && s.atCut(end)) {
		return
	}
	if k := kinds(t[b:end]); v.set == &setUpper && k.digit == 0 && v.prefix != "API-" || v.min >= 16 && k.digit == 0 && k.upper == 0 {
		return
	}
	s.tokenDone = end
	s.mask(start, s.wrapped(start, end), catVendor)
}

// atCut says whether the text at i is an edge that a truncation made.
func (s *scanner) atCut(i int) bool {
	t := s.t[i:]
	return t == "" || strings.HasPrefix(t, "...") || strings.HasPrefix(t, "…") || strings.HasPrefix(t, "[truncated") ||
		strings.HasPrefix(t, "\n[truncated") || strings.HasPrefix(t, "\n...")
}

// jwt masks a JSON web token, whole or cut, that starts at a.
func (s *scanner) jwt(a int) {
	if a < s.tokenDone || s.t[a:a+3] != "eyJ" || a > 0 && alnum(s.t[a-1]) {
		return
	}
	end := s.run(a, &setDotted, len(s.t))
	s.tokenDone = end
	for end > a && s.t[end-1] == '.' {
		end--
	}
	head, rest, _ := strings.Cut(s.t[a:end], ".")
	if len(head) < 12 {
		return
	}
	n := min(len(head), 400) &^ 3
	if n == 0 {
		return
	}
	raw, err := base64.RawURLEncoding.DecodeString(head[:n])
	if err != nil {
		return
	}
	for _, k := range [...]string{`"alg"`, `"typ"`, `"kid"`, `"enc"`, `"x5t"`, `"cty"`, `"jku"`} {
		if strings.Contains(string(raw), k) {
			s.mask(a, s.wrapped(a, end), catJWT)
			return
		}
	}
	if strings.HasPrefix(rest, "eyJ") {
		s.mask(a, s.wrapped(a, end), catJWT)
	}
}

// hash masks a password hash: $id$salt$digest, or {SCHEME}base64.
func (s *scanner) hash(a, b int, scheme bool) {
	if a < s.hashing || a > 0 && (alnum(s.t[a-1]) || s.t[a-1] == '$') {
		return
	}
	end := b
	if scheme {
		if n := strings.IndexByte(s.t[b:min(len(s.t), b+12)], '}'); n >= 0 {
			end = b + n + 1
		}
	}
	end = s.run(end, &hashByte, 1024)
	for end > b && (s.t[end-1] == '.' && end < len(s.t) && blank(s.t[end]) || s.t[end-1] == ',') {
		end--
	}
	k := kinds(s.t[b:end])
	if end-b < 8 || k.digit+k.upper == 0 || s.t[a] != '$' && !scheme && strings.Count(s.t[b:end], "$") == 0 {
		return
	}
	s.hashing = end
	s.mask(a, end, catHash)
}

// hashByte are the characters of hashes in their usual notations.
var hashByte = byteSet(alphabet + "$./+=-_*,@#")

// padding masks the 64 random bytes of a storage key: 86 characters of base64
// and a double padding that ends before end.
func (s *scanner) padding(end int) {
	if end < len(s.t) && s.t[end] == '=' {
		return
	}
	start := s.runBack(end-2, &storageByte, 90)
	if end-2-start == 86 && mixed(s.t[start:end]) {
		s.mask(start, end, catStorageKey)
	}
}

var storageByte = byteSet(alphabet + "+/")
