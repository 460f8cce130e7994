package shape

import (
	"encoding/base64"
	"strings"
)

// A Vendor is the form of a vendor's token: a prefix in exact case, then at
// least Min characters of Set. The table is the forms that the vendors
// document, and those that the default rules of gitleaks 8 (MIT) list; a wrong
// row costs a false alarm, so each prefix is one that no word begins with. A
// prefix that does not begin with a letter stands in the middle of its token.
type Vendor struct {
	Prefix string
	Set    *Set
	Min    int
}

var (
	setBase64 = NewSet(Alphabet + "+/=_-")
	setAny    = NewSet(Alphabet + "+/=_-.~:|%")
)

// Vendors is the reviewed table.
var Vendors = []Vendor{
	// code hosting and packages
	{"ghp_", SetAlnum, 16}, {"gho_", SetAlnum, 16}, {"ghu_", SetAlnum, 16}, {"ghs_", SetAlnum, 16}, {"ghr_", SetAlnum, 16}, {"github_pat_", SetWord, 20},
	{"glpat-", SetDotted, 16}, {"gldt-", SetURL, 16}, {"glrt-", SetURL, 16}, {"glcbt-", SetURL, 16}, {"glptt-", SetURL, 16}, {"glft-", SetURL, 16},
	{"glsoat-", SetURL, 16}, {"glimt-", SetURL, 16}, {"glagent-", SetURL, 16}, {"gloas-", SetURL, 16}, {"glffct-", SetURL, 16},
	{"GR1348941", SetURL, 16}, {"ATATT3", setBase64, 20}, {"ATCTT3", setBase64, 20}, {"ATBB", SetAlnum, 24}, {"npm_", SetAlnum, 30}, {"pypi-AgE", SetURL, 16},
	{"rubygems_", SetAlnum, 24}, {"oy2", SetAlnum, 40}, {"CLOJARS_", SetAlnum, 40}, {"cio", SetAlnum, 32}, {"bkua_", SetAlnum, 24}, {"CCIPAT_", SetWord, 20},
	{"sqp_", SetAlnum, 30}, {"squ_", SetAlnum, 30}, {"sqa_", SetAlnum, 30}, {"AKCp", SetAlnum, 40}, {"cmVmdGtu", SetAlnum, 32}, {"dckr_pat_", SetURL, 16},
	{"dckr_oat_", SetURL, 16}, {"sgp_", SetWord, 30},
	// chat and mail
	{"xoxb-", SetURL, 10}, {"xoxp-", SetURL, 10}, {"xoxa-", SetURL, 10}, {"xoxr-", SetURL, 10}, {"xoxs-", SetURL, 10}, {"xoxo-", SetURL, 10}, {"xoxc-", SetURL, 10},
	{"xoxd-", setAny, 10}, {"xoxe-", SetURL, 10}, {"xoxe.", SetDotted, 10}, {"xapp-", SetURL, 10}, {"xwfp-", SetURL, 10}, {"SG.", SetDotted, 30}, {"xkeysib-", SetURL, 30},
	{"key-", SetAlnum, 32}, {"syt_", SetWord, 20},
	// clouds
	{"AKIA", SetUpper, 16}, {"ASIA", SetUpper, 16}, {"ABIA", SetUpper, 16}, {"ACCA", SetUpper, 16}, {"ABSK", setBase64, 40}, {"bedrock-api-key-", setBase64, 30},
	{"AIza", SetURL, 30}, {"ya29.", SetDotted, 16}, {"GOCSPX-", SetURL, 16}, {"1//0", SetURL, 30}, {"LTAI", SetAlnum, 14}, {"AKID", SetAlnum, 30},
	{"dop_v1_", SetAlnum, 30}, {"doo_v1_", SetAlnum, 30}, {"dor_v1_", SetAlnum, 30}, {"HRKU-", SetURL, 30}, {"fo1_", SetURL, 30}, {"fm1r_", setBase64, 30}, {"fm2_", setBase64, 30},
	{"nfp_", SetAlnum, 30}, {"sbp_", SetAlnum, 30}, {"pscale_tkn_", SetDotted, 20}, {"pscale_pw_", SetDotted, 20}, {"pscale_oauth_", SetDotted, 20}, {"napi_", SetAlnum, 30},
	{"rnd_", SetAlnum, 28}, {"vercel_", SetAlnum, 20}, {"v1.0-", SetGUID, 40}, {"SCWSECRET", SetAlnum, 8}, {"AQVN", SetURL, 35}, {"t1.9eu", SetDotted, 40},
	// infrastructure
	{"hvs.", SetURL, 20}, {"hvb.", SetURL, 20}, {"hvr.", SetURL, 20}, {".atlasv1.", SetURL, 20}, {"pul-", SetGUID, 30}, {"tskey-", SetURL, 12}, {"dnkey-", SetURL, 20},
	{"NRAK-", SetAlnum, 20}, {"NRJS-", SetAlnum, 16}, {"NRII-", SetURL, 20}, {"NRRA-", SetAlnum, 20}, {"NRSP-", SetAlnum, 20}, {"glsa_", SetWord, 20}, {"glc_", setBase64, 30},
	{"eyJrIjoi", setBase64, 40}, {"sntrys_", setBase64, 30}, {"sntryu_", SetAlnum, 30}, {"dt0c01.", SetDotted, 30}, {"dt0s", SetDotted, 40}, {"dapi", SetGUID, 32},
	{"dp.pt.", SetAlnum, 30}, {"dp.st.", SetDotted, 30}, {"dp.ct.", SetAlnum, 30}, {"dp.sa.", SetAlnum, 30}, {"dp.scim.", SetAlnum, 30}, {"dp.audit.", SetAlnum, 30},
	{"ops_eyJ", setBase64, 40}, {"AGE-SECRET-KEY-1", SetUpper, 40}, {"sha256~", SetURL, 30}, {"pnu_", SetAlnum, 30}, {"ico-", SetAlnum, 30}, {"_mmk", SetAlnum, 0},
	{"sdk-", SetGUID, 36}, {"mob-", SetGUID, 36}, {"API-", SetUpper, 24}, {"pat.", SetDotted, 50}, {"aio_", SetAlnum, 26}, {"essu_", setBase64, 30},
	// machine learning
	{"sk-proj-", SetURL, 20}, {"sk-svcacct-", SetURL, 20}, {"sk-admin-", SetURL, 20}, {"sk-ant-", SetURL, 20}, {"sk-or-", SetURL, 20}, {"sk-lf-", SetURL, 20}, {"sk-", SetAlnum, 20}, {"hf_", SetAlnum, 30},
	{"api_org_", SetAlnum, 30}, {"gsk_", SetAlnum, 30}, {"xai-", SetAlnum, 40}, {"pplx-", SetAlnum, 40}, {"r8_", SetAlnum, 30}, {"nvapi-", SetURL, 30}, {"lsv2_", SetWord, 30},
	{"csk-", SetAlnum, 40}, {"fw_", SetAlnum, 22}, {"tgp_v1_", SetURL, 30},
	// applications
	{"sk_live_", SetAlnum, 10}, {"sk_test_", SetAlnum, 10}, {"rk_live_", SetAlnum, 10}, {"rk_test_", SetAlnum, 10}, {"whsec_", setBase64, 20}, {"shpat_", SetAlnum, 30},
	{"shpss_", SetAlnum, 30}, {"shpca_", SetAlnum, 30}, {"shppa_", SetAlnum, 30}, {"EAAA", SetURL, 40}, {"sq0atp-", SetURL, 20}, {"sq0csp-", SetURL, 30}, {"EAAC", SetAlnum, 60},
	{"access_token$production$", SetAlnum, 20}, {"lin_api_", SetAlnum, 30}, {"lin_oauth_", SetAlnum, 30}, {"ntn_", SetAlnum, 30}, {"secret_", SetAlnum, 40}, {"figd_", SetURL, 30},
	{"figu_", SetURL, 30}, {"PMAK-", SetURL, 30}, {"PMAT-", SetURL, 20}, {"CFPAT-", SetURL, 30}, {"duffel_live_", SetURL, 30}, {"duffel_test_", SetURL, 30}, {"EZAK", SetAlnum, 50},
	{"EZTK", SetAlnum, 50}, {"FLWSECK-", SetURL, 20}, {"FLWSECK_TEST-", SetURL, 20}, {"shippo_live_", SetAlnum, 30}, {"tfp_", SetDotted, 40}, {"rdme_", SetAlnum, 40},
	{"phx_", SetAlnum, 30}, {"fio-u-", SetURL, 30}, {"hubspot-", SetGUID, 36}, {"pat-na1-", SetGUID, 30}, {"pat-eu1-", SetGUID, 30}, {"sl.", SetURL, 120}, {"AAAAAAAAAAAAAAAAAAAA", setAny, 50},
	{"dG9rO", setBase64, 40}, {"ntf_", SetAlnum, 30}, {"apify_api_", SetAlnum, 20}, {"kgl_", SetAlnum, 30}, {"waka_", SetGUID, 36}, {"SSWS ", SetURL, 30}, {"sess-", SetAlnum, 40}, {":AA", SetURL, 30},
}

// probe is how much of a token is looked at before it is accepted.
const probe = 256

// cutMin is how much of a token must be left beside a cut.
const cutMin = 8

// Match finds the token whose prefix is t[a:b] in any case. cut says whether
// the text at an index is an edge that a truncation made.
func (v *Vendor) Match(t string, a, b int, cut func(i int) bool) (start, end int, ok bool) {
	if t[a:b] != v.Prefix {
		return 0, 0, false
	}
	start = a
	if inner := !Alnum(v.Prefix[0]); inner {
		if start = SetWord.Start(t, a, a-64); a-start < cutMin {
			return 0, 0, false
		}
	} else if a > 0 && (Alnum(t[a-1]) || t[a-1] == '_') {
		return 0, 0, false
	}
	end = v.Set.End(t, b, b+probe)
	for end > b && (t[end-1] == '.' || t[end-1] == '-' && t[end-2] == '-') {
		end--
	}
	if end-b < v.Min && !(end-b >= cutMin && cut(end)) {
		return 0, 0, false
	}
	k := Count(t[b:end])
	if v.Min >= 16 && k.Digit == 0 && (k.Upper == 0 || v.Set == SetUpper) || v.Min >= 40 && k.Lower == 0 && k.Digit == 0 {
		return 0, 0, false
	}
	if end == b+probe {
		end = v.Set.End(t, b, len(t))
	}
	return start, end, true
}

// claims are members of a JSON web token's header.
var claims = []string{`"alg"`, `"typ"`, `"kid"`, `"enc"`, `"x5t"`, `"cty"`, `"jku"`}

// JWT measures the JSON web token, whole or cut, that t[a:] begins with, after
// "eyJ". end is where its characters end, whether or not it is one.
func JWT(t string, a int) (end int, ok bool) {
	end = SetDotted.End(t, a, len(t))
	stop := end
	for stop > a && t[stop-1] == '.' {
		stop--
	}
	head, rest, _ := strings.Cut(t[a:stop], ".")
	if len(head) < 12 {
		return end, false
	}
	if strings.HasPrefix(rest, "eyJ") {
		return stop, true
	}
	raw, err := base64.RawURLEncoding.DecodeString(head[:min(len(head), 400)&^3])
	for _, c := range claims {
		if err == nil && strings.Contains(string(raw), c) {
			return stop, true
		}
	}
	return end, false
}

// setHash are the characters of hashes in their usual notations.
var setHash = NewSet(Alphabet + "$./+=-_*,@#")

// Hash finds the end of the password hash whose $id$ or {SCHEME is t[a:b].
func Hash(t string, a, b int) (end int, ok bool) {
	scheme := t[a] == '{'
	end = b
	if n := strings.IndexByte(t[b:min(len(t), b+12)], '}'); scheme && n >= 0 {
		end = b + n + 1
	}
	end = setHash.End(t, end, b+probe)
	for end > b && (t[end-1] == ',' || t[end-1] == '.' && end < len(t) && Blank(t[end])) {
		end--
	}
	v := t[b:end]
	k := Count(v)
	ok = len(v) >= 8 && k.Digit+k.Upper > 0 && (t[a] == '$' || scheme || strings.IndexByte(v, '$') >= 0)
	if ok && end == b+probe {
		end = setHash.End(t, end, len(t))
	}
	return end, ok
}

// StorageKey finds the start of an Azure storage key that ends with the double
// padding before end: 64 random bytes in base64.
func StorageKey(t string, end int) (start int, ok bool) {
	start = SetBase64.Start(t, end-2, end-2-90)
	return start, end-2-start == 86 && Mixed(t[start:end])
}

// WireGuard says whether s is a key of WireGuard, private or public.
func WireGuard(s string) bool {
	return len(s) == 44 && s[43] == '=' && SetBase64.Only(s[:43])
}
