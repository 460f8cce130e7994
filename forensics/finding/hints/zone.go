package hints

import (
	"math"
	"slices"
	"strings"

	"ghostbot/forensics/dns"
)

// zone is what was asked below one registered domain.
type zone struct {
	name         string
	names        uint64 // different ones
	queries, odd uint64
	bytes        uint64
	missing      uint64 // different names that do not exist
	strange      uint64 // of these, those that begin with no word
	length       uint64 // of the parts in front of the zone, without dots
	bits         float64
	frames       []uint32
	absent       []string // first labels of names that do not exist
}

const (
	maxFrames = 8
	maxAbsent = 1000
)

func (z *zone) mean() float64 { return float64(z.length) / float64(max(z.names, 1)) }

// entropy is the mean over the names, in bits a character.
func (z *zone) entropy() float64 { return z.bits / float64(max(z.names, 1)) }

// survey sums up names by zone, in the order in which zones came.
func survey(names []dns.Name) []*zone {
	by := map[string]*zone{}
	var out []*zone
	for i := range names {
		n := &names[i]
		host, name := split(n.Text)
		if name == "" {
			continue
		}
		z := by[name]
		if z == nil {
			z = &zone{name: name}
			by[name] = z
			out = append(out, z)
		}
		z.add(n, host)
	}
	return out
}

func (z *zone) add(n *dns.Name, host string) {
	flat := strings.ReplaceAll(host, ".", "")
	z.names++
	z.queries += n.Count
	z.odd += n.Odd
	z.bytes += n.Bytes
	z.length += uint64(len(flat))
	z.bits += entropy(flat)
	if n.First > 0 && len(z.frames) < maxFrames {
		z.frames = append(z.frames, n.First)
	}
	if n.NX == 0 {
		return
	}
	z.missing++
	label, _, _ := strings.Cut(host, ".")
	if random(label) {
		z.strange++
	}
	if len(z.absent) < maxAbsent {
		z.absent = append(z.absent, label)
	}
}

// split cuts a name into the part in front of its zone, and the zone: the last two labels,
// or three where the last two are of the kind co.uk. Names of addresses have no zone here.
func split(name string) (host, zone string) {
	name = strings.TrimSuffix(name, ".")
	if strings.HasSuffix(name, ".arpa") {
		return "", ""
	}
	labels := strings.Split(name, ".")
	n := 2
	if k := len(labels); k > 2 && len(labels[k-1]) == 2 && len(labels[k-2]) <= 3 {
		n = 3
	}
	if len(labels) < n {
		return "", ""
	}
	cut := len(labels) - n
	return strings.Join(labels[:cut], "."), strings.Join(labels[cut:], ".")
}

// entropy is that of a text's characters, in bits.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// pairs are the pairs of letters that most words are made of.
const pairs = "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur " +
	"ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut ss so rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh " +
	"ir su id os iv ia am fi ci vi pl ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke fr oo av ag if ap gr od bo sp rd do uc bu ei ov by rm ep tt oc fa " +
	"ef cu rn sc gi da yo cr cl du ga qu ue ff ba ey ls va um pp ua up lu go ht ru ug ds lt pi rc rr eg au ck ew mu br bi pt ak pu ui rg ib tl ny ki rk ys"

// random reports whether a label is no word: long, and made of pairs of letters that words
// do not have.
func random(label string) bool {
	if len(label) < 8 || strings.HasPrefix(label, "xn--") {
		return false
	}
	seen, known := 0, 0
	for i := range len(label) - 1 {
		seen++
		if a, b := label[i], label[i+1]; letter(a) && letter(b) && common(a, b) {
			known++
		}
	}
	return float64(known) < 0.4*float64(seen) && distinct(label) >= 6
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' }

func common(a, b byte) bool { return strings.Contains(pairs, string([]byte{a, b})) }

func distinct(s string) int {
	var seen []byte
	for i := range len(s) {
		if !slices.Contains(seen, s[i]) {
			seen = append(seen, s[i])
		}
	}
	return len(seen)
}

// counted returns the prefix of most names that do not exist and end in a number, and how
// many different numbers there are.
func (z *zone) counted() (prefix string, n int) {
	by := map[string]map[string]bool{}
	for _, label := range z.absent {
		p := strings.TrimRight(label, "0123456789")
		if p == label || p == "" {
			continue
		}
		if by[p] == nil {
			by[p] = map[string]bool{}
		}
		by[p][label] = true
		if k := len(by[p]); k > n || k == n && p < prefix {
			prefix, n = p, k
		}
	}
	return prefix, n
}
