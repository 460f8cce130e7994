package shape

import (
	"encoding/base64"
	"strings"
)

// A Vendor is the form of a vendor's token: a prefix in exact case, then at
// least Min characters of Set. The table is the forms that the vendors
// document, and those that the default rules of gitleaks 8 (MIT) list; a wrong
// row costs a false alarm, so each prefix is one that no word begins with.
type Vendor struct {
	Prefix string
	Set    *Set
	Min    int
	Back   int // the prefix stands in the middle: so many characters are before it
}

var (
	setBase64 = NewSet(Alphabet + "+/=_-")
	setAny    = NewSet(Alphabet + "+/=_-.~:|%")
	setDigit  = NewSet("0123456789")
	setDollar = NewSet(Alphabet + "$")
)

// Vendors is the reviewed table.
var Vendors = []Vendor{
	// code hosting and packages
	{"ghp_", SetAlnum, 16, 0}, {"gho_", SetAlnum, 16, 0}, {"ghu_", SetAlnum, 16, 0}, {"ghs_", SetAlnum, 16, 0}, {"ghr_", SetAlnum, 16, 0}, {"github_pat_", SetWord, 20, 0},
	{"glpat-", SetDotted, 16, 0}, {"gldt-", SetURL, 16, 0}, {"glrt-", SetURL, 16, 0}, {"glcbt-", SetURL, 16, 0}, {"glptt-", SetURL, 16, 0}, {"glft-", SetURL, 16, 0},
	{"glsoat-", SetURL, 16, 0}, {"glimt-", SetURL, 16, 0}, {"glagent-", SetURL, 16, 0}, {"gloas-", SetURL, 16, 0}, {"glffct-", SetURL, 16, 0},
	{"GR1348941", SetURL, 16, 0}, {"ATATT3", setBase64, 20, 0}, {"ATCTT3", setBase64, 20, 0}, {"ATBB", SetAlnum, 24, 0}, {"npm_", SetAlnum, 30, 0}, {"pypi-AgE", SetURL, 16, 0},
	{"rubygems_", SetAlnum, 24, 0}, {"oy2", SetAlnum, 40, 0}, {"CLOJARS_", SetAlnum, 40, 0}, {"cio", SetAlnum, 32, 0}, {"bkua_", SetAlnum, 24, 0}, {"CCIPAT_", SetWord, 20, 0},
	{"sqp_", SetAlnum, 30, 0}, {"squ_", SetAlnum, 30, 0}, {"sqa_", SetAlnum, 30, 0}, {"AKCp", SetAlnum, 40, 0}, {"cmVmdGtu", SetAlnum, 32, 0}, {"dckr_pat_", SetURL, 16, 0},
	{"dckr_oat_", SetURL, 16, 0}, {"sgp_", SetWord, 30, 0},
	// chat and mail
	{"xoxb-", SetURL, 10, 0}, {"xoxp-", SetURL, 10, 0}, {"xoxa-", SetURL, 10, 0}, {"xoxr-", SetURL, 10, 0}, {"xoxs-", SetURL, 10, 0}, {"xoxo-", SetURL, 10, 0}, {"xoxc-", SetURL, 10, 0},
	{"xoxd-", setAny, 10, 0}, {"xoxe-", SetURL, 10, 0}, {"xoxe.", SetDotted, 10, 0}, {"xapp-", SetURL, 10, 0}, {"xwfp-", SetURL, 10, 0}, {"SG.", SetDotted, 30, 0}, {"xkeysib-", SetURL, 30, 0},
	{"key-", SetAlnum, 32, 0}, {"syt_", SetWord, 20, 0},
	// clouds
	{"AKIA", SetUpper, 16, 0}, {"ASIA", SetUpper, 16, 0}, {"ABIA", SetUpper, 16, 0}, {"ACCA", SetUpper, 16, 0}, {"ABSK", setBase64, 40, 0}, {"bedrock-api-key-", setBase64, 30, 0},
	{"AIza", SetURL, 30, 0}, {"ya29.", SetDotted, 16, 0}, {"GOCSPX-", SetURL, 16, 0}, {"1//0", SetURL, 30, 0}, {"LTAI", SetAlnum, 14, 0}, {"AKID", SetAlnum, 30, 0},
	{"dop_v1_", SetAlnum, 30, 0}, {"doo_v1_", SetAlnum, 30, 0}, {"dor_v1_", SetAlnum, 30, 0}, {"HRKU-", SetURL, 30, 0}, {"fo1_", SetURL, 30, 0}, {"fm1r_", setBase64, 30, 0}, {"fm2_", setBase64, 30, 0},
	{"nfp_", SetAlnum, 30, 0}, {"sbp_", SetAlnum, 30, 0}, {"pscale_tkn_", SetDotted, 20, 0}, {"pscale_pw_", SetDotted, 20, 0}, {"pscale_oauth_", SetDotted, 20, 0}, {"napi_", SetAlnum, 30, 0},
	{"rnd_", SetAlnum, 28, 0}, {"vercel_", SetWord, 20, 0}, {"v1.0-", SetGUID, 40, 0}, {"SCWSECRET", SetAlnum, 8, 0}, {"AQVN", SetURL, 35, 0}, {"AQV", SetURL, 120, 0}, {"AQX", SetURL, 120, 0}, {"t1.9eu", SetDotted, 40, 0},
	// infrastructure
	{"hvs.", SetURL, 20, 0}, {"hvb.", SetURL, 20, 0}, {"hvr.", SetURL, 20, 0}, {".atlasv1.", SetURL, 20, 8}, {"pul-", SetGUID, 30, 0}, {"tskey-", SetURL, 12, 0}, {"dnkey-", SetURL, 20, 0},
	{"NRAK-", SetAlnum, 20, 0}, {"NRJS-", SetAlnum, 16, 0}, {"NRII-", SetURL, 20, 0}, {"NRRA-", SetAlnum, 20, 0}, {"NRSP-", SetAlnum, 20, 0}, {"glsa_", SetWord, 20, 0}, {"glc_", setBase64, 30, 0},
	{"eyJrIjoi", setBase64, 40, 0}, {"sntrys_", setBase64, 30, 0}, {"sntryu_", SetAlnum, 30, 0}, {"dt0c01.", SetDotted, 30, 0}, {"dt0s", SetDotted, 40, 0}, {"dapi", SetGUID, 32, 0},
	{"dp.pt.", SetAlnum, 30, 0}, {"dp.st.", SetDotted, 30, 0}, {"dp.ct.", SetAlnum, 30, 0}, {"dp.sa.", SetAlnum, 30, 0}, {"dp.scim.", SetAlnum, 30, 0}, {"dp.audit.", SetAlnum, 30, 0},
	{"ops_eyJ", setBase64, 40, 0}, {"AGE-SECRET-KEY-1", SetUpper, 40, 0}, {"sha256~", SetURL, 30, 0}, {"pnu_", SetAlnum, 30, 0}, {"ico-", SetAlnum, 30, 0}, {"_mmk", SetAlnum, 0, 20},
	{"sdk-", SetGUID, 36, 0}, {"mob-", SetGUID, 36, 0}, {"API-", SetUpper, 24, 0}, {"pat.", SetDotted, 50, 0}, {"aio_", SetAlnum, 26, 0}, {"essu_", setBase64, 30, 0},
	// machine learning
	{"sk-proj-", SetURL, 20, 0}, {"sk-svcacct-", SetURL, 20, 0}, {"sk-admin-", SetURL, 20, 0}, {"sk-ant-", SetURL, 20, 0}, {"sk-or-", SetURL, 20, 0}, {"sk-lf-", SetURL, 20, 0}, {"sk-", SetAlnum, 20, 0}, {"hf_", SetAlnum, 30, 0},
	{"api_org_", SetAlnum, 30, 0}, {"gsk_", SetAlnum, 30, 0}, {"xai-", SetAlnum, 40, 0}, {"pplx-", SetAlnum, 40, 0}, {"r8_", SetAlnum, 30, 0}, {"nvapi-", SetURL, 30, 0}, {"lsv2_", SetWord, 30, 0},
	{"csk-", SetAlnum, 40, 0}, {"fw_", SetAlnum, 22, 0}, {"tgp_v1_", SetURL, 30, 0}, {"AQ.", SetURL, 40, 0},
	// applications
	{"sk_live_", SetAlnum, 10, 0}, {"sk_test_", SetAlnum, 10, 0}, {"rk_live_", SetAlnum, 10, 0}, {"rk_test_", SetAlnum, 10, 0}, {"whsec_", setBase64, 20, 0}, {"shpat_", SetAlnum, 30, 0},
	{"shpss_", SetAlnum, 30, 0}, {"shpca_", SetAlnum, 30, 0}, {"shppa_", SetAlnum, 30, 0}, {"EAAA", SetURL, 40, 0}, {"sq0atp-", SetURL, 20, 0}, {"sq0csp-", SetURL, 30, 0}, {"EAAC", SetAlnum, 60, 0},
	{"access_token$production$", setDollar, 20, 0}, {"access_token$sandbox$", setDollar, 20, 0}, {"lin_api_", SetAlnum, 30, 0}, {"lin_oauth_", SetAlnum, 30, 0}, {"ntn_", SetAlnum, 30, 0}, {"secret_", SetAlnum, 40, 0}, {"figd_", SetURL, 30, 0},
	{"figu_", SetURL, 30, 0}, {"PMAK-", SetURL, 30, 0}, {"PMAT-", SetURL, 20, 0}, {"CFPAT-", SetURL, 30, 0}, {"duffel_live_", SetURL, 30, 0}, {"duffel_test_", SetURL, 30, 0}, {"EZAK", SetAlnum, 50, 0},
	{"EZTK", SetAlnum, 50, 0}, {"FLWSECK-", SetURL, 20, 0}, {"FLWSECK_TEST-", SetURL, 20, 0}, {"shippo_live_", SetAlnum, 30, 0}, {"tfp_", SetDotted, 40, 0}, {"rdme_", SetAlnum, 40, 0},
	{"phx_", SetAlnum, 30, 0}, {"fio-u-", SetURL, 30, 0}, {"hubspot-", SetGUID, 36, 0}, {"pat-na1-", SetGUID, 30, 0}, {"pat-eu1-", SetGUID, 30, 0}, {"sl.", SetURL, 120, 0}, {"AAAAAAAAAAAAAAAAAAAA", setAny, 50, 0},
	{"dG9rO", setBase64, 40, 0}, {"ntf_", SetAlnum, 30, 0}, {"apify_api_", SetAlnum, 20, 0}, {"kgl_", SetAlnum, 30, 0}, {"waka_", SetGUID, 36, 0}, {"SSWS ", SetURL, 30, 0}, {"sess-", SetAlnum, 40, 0}, {":AA", SetURL, 30, 8},
	// keys that carry a mark inside
	{"8Q~", setAny, 28, 3}, {"7Q~", setAny, 28, 3}, {"JQQJ99", SetAlnum, 20, 40}, {"+ASb", setBase64, 6, 30}, {"+AEh", setBase64, 6, 30}, {"+ARm", setBase64, 6, 30}, {"AIoT", setBase64, 6, 30},
	{"+ACR", setBase64, 6, 38}, {"AzFu", setBase64, 6, 40}, {"AzSe", SetAlnum, 6, 38}, {"AzCa", setBase64, 6, 30}, {"-us", setDigit, 1, 32},
	// more of the above
	{"SK", SetHex, 32, 0}, {"sb_secret_", SetURL, 20, 0}, {"re_", SetWord, 28, 0}, {"pcsk_", SetWord, 40, 0}, {"sk_", SetAlnum, 40, 0}, {"tvly-", SetURL, 24, 0},
	{"nbt_", SetDotted, 40, 0}, {"key_", SetHex, 60, 0}, {"cfut_", SetAlnum, 40, 0}, {"cfat_", SetAlnum, 40, 0}, {"cfk_", SetAlnum, 40, 0}, {"IQoJb3JpZ2lu", setBase64, 80, 0}, {"FwoGZXIvYXdz", setBase64, 80, 0},
	{"FQoGZXIvYXdz", setBase64, 80, 0}, {"+ABa", setBase64, 6, 70}, {"+AMC", setBase64, 6, 70}, {"+ASt", setBase64, 6, 70}, {"ACDb", setBase64, 6, 70}, {"sk-", SetURL, 40, 0}, {"rpa_", SetAlnum, 40, 0}, {"ctx7sk-", SetURL, 30, 0},
	{"fc-", SetHex, 32, 0}, {"jina_", SetAlnum, 50, 0}, {"pa-", SetURL, 43, 0}, {"pat_", SetAlnum, 50, 0}, {"csm_", SetAlnum, 40, 0}, {"bkct_", SetAlnum, 30, 0}, {"xoxd-", setAny, 40, 0}, {"lin_wh_", SetAlnum, 30, 0}, {"gldpt-", SetURL, 16, 0},
	{"ATSTT3", setBase64, 20, 0}, {"glwt-", SetURL, 16, 0}, {"ghv_", SetAlnum, 30, 0}, {"sk-kimi-", SetAlnum, 30, 0}, {"dose", SetHex, 32, 0}, {"dckr_sat_", SetURL, 16, 0},
	{"fal-", SetGUID, 36, 0}, {"cu_", SetHex, 32, 0}, {"ddp_", SetAlnum, 36, 0}, {"ddapp_", SetAlnum, 34, 0}, {"ddapi_", SetAlnum, 34, 0}, {"sgamp_", SetWord, 30, 0}, {"wandb_v1_", SetWord, 40, 0},
	{"secret-live-", setBase64, 30, 0}, {"secret-test-", setBase64, 30, 0}, {"sk.eyJ", SetDotted, 60, 0}, {"access-production-", SetGUID, 36, 0}, {"access-sandbox-", SetGUID, 36, 0},
	{"slk_", SetAlnum, 40, 0}, {"tk-us-", SetURL, 40, 0}, {"y0_", SetURL, 50, 0}, {"AVNS_", SetWord, 16, 0}, {"mdb_sa_sk_", SetURL, 30, 0}, {"hcaik_", SetAlnum, 50, 0}, {"pdus+", setAny, 20, 0},
	{"st.", SetDotted, 60, 0}, {"pat", SetDotted, 75, 0}, {"EAA", SetAlnum, 80, 0}, {"md5", SetHex, 32, 0}, {"BBFF-", SetAlnum, 30, 0}, {"e2b_", SetHex, 40, 0}, {"gb_api_", SetAlnum, 30, 0},
	{"SWMTKN-1-", SetURL, 40, 0}, {"K10", SetHex, 64, 0}, {"tr_prod_", SetAlnum, 16, 0}, {"tr_dev_", SetAlnum, 16, 0}, {"snyk_uat.", SetDotted, 40, 0}, {"live_", SetAlnum, 35, 0}, {"ctp_", SetAlnum, 30, 0}, {"AZDO", SetAlnum, 4, 70},
	{"NRAL", SetAlnum, 0, 36}, {"AzFu", setAny, 6, 40}, {"SUA", SetUpper, 55, 0}, {"SAA", SetUpper, 55, 0}, {"SOA", SetUpper, 55, 0}, {"AGE-PLUGIN-", SetURL, 30, 0}, {"A3-", SetURL, 30, 0}, {"rootly_", SetHex, 40, 0},
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
	if v.Back > 0 {
		if start = v.before().Start(t, a, a-128); a-start < v.Back || v.Set == setDigit && a-start != v.Back {
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

// before are the characters that stand before a mark inside a token.
func (v *Vendor) before() *Set {
	switch {
	case v.Prefix == ":AA": // Telegram: the number of a bot
		return setDigit
	case v.Set == setDigit:
		return SetHex
	case v.Set == setBase64:
		return SetBase64
	case v.Prefix == "AZDO":
		return SetAlnum
	case v.Set == setAny:
		return SetDotted
	}
	return SetWord
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
var (
	setHash  = NewSet(Alphabet + "$./+=-_*,@#")
	setScram = NewSet(Alphabet + "$/+=:")
)

// Hash finds the end of the password hash whose $id$ or {SCHEME is t[a:b].
func Hash(t string, a, b int) (end int, ok bool) {
	scheme := t[a] == '{'
	end = b
	if scheme {
		n := strings.IndexByte(t[b-1:min(len(t), b+12)], '}')
		if n < 0 {
			return b, false
		}
		end = b + n
	}
	set := setHash
	if HasFold(t[a:b], "scram-") {
		set = setScram
	}
	end = set.End(t, end, b+probe)
	for end > b && (t[end-1] == ',' || t[end-1] == '.' && end < len(t) && Blank(t[end])) {
		end--
	}
	v := t[b:end]
	k := Count(v)
	ok = len(v) >= 8 && k.Digit+k.Upper > 0 && (t[a] == '$' || scheme || strings.IndexByte(v, '$') >= 0)
	if ok && end == b+probe {
		end = set.End(t, end, len(t))
	}
	return end, ok
}

// StorageKey finds the start of an Azure storage key that ends with the double
// padding before end: 64 random bytes in base64.
func StorageKey(t string, end int) (start int, ok bool) {
	start = SetBase64.Start(t, end-2, end-2-90)
	return start, end-2-start == 86 && Mixed(t[start:end])
}

// CephKey finds the start of a key of Ceph's that ends with the double padding
// before end: a type, a time and 16 random bytes in base64.
func CephKey(t string, end int) (start int, ok bool) {
	start = SetBase64.Start(t, end-2, end-2-40)
	return start, end-2-start == 38 && t[start:start+2] == "AQ" && t[start+2] >= 'A' && t[start+2] <= 'D' && Mixed(t[start:end])
}

// WireGuard says whether s is a key of WireGuard, private or public.
func WireGuard(s string) bool {
	return len(s) == 44 && s[43] == '=' && SetBase64.Only(s[:43])
}
