package triage_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// forge writes a plan with another start time, with its checksum: as if both
// processes had started within the same tick.
func (l *lab) forge(sid, was, now string) string {
	l.Helper()
	for _, name := range []string{"plan.json", "snapshot.json"} {
		path := l.session(sid, name)
		s := strings.ReplaceAll(l.read(path), ":"+was+":", ":"+now+":")
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			l.Fatal(err)
		}
		sum := sha256.Sum256([]byte(s))
		m := l.session(sid, "manifest.json")
		fixed := regexp.MustCompile(fmt.Sprintf(`"%s":"[0-9a-f]{64}"`, regexp.QuoteMeta(name))).ReplaceAllString(l.read(m), fmt.Sprintf(`"%s":"%s"`, name, hex.EncodeToString(sum[:])))
		if err := os.WriteFile(m, []byte(fixed), 0o600); err != nil {
			l.Fatal(err)
		}
	}
	return sid
}
