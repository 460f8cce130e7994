package evidence

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"time"

	"ghostbot/audit"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/internal/input"
)

// BundledFile is one file of an export bundle.
type BundledFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Manifest describes an export bundle; it is the bundle's first member.
type Manifest struct {
	SessionID string        `json:"session_id"`
	Made      time.Time     `json:"made"`
	Verified  audit.Report  `json:"verified"`
	Files     []BundledFile `json:"files"`
}

// Bundle makes a gzipped tar of the journals of a case and its report, with a
// manifest of their hashes.
func Bundle(ring *keyring.Ring, sid, report string) (Manifest, []byte, error) {
	m := Manifest{SessionID: sid, Made: time.Now().UTC(), Verified: ring.Verify(sid, audit.VerifyOptions{})}
	bodies := map[string][]byte{}
	for _, name := range []string{audit.FileName(sid, audit.Case), audit.FileName(sid, audit.Shell), audit.FileName(sid, audit.Tasks), report} {
		b, err := input.Read(filepath.Join(ring.Dir(), name), math.MaxInt64-1)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return m, nil, err
		}
		sum := sha256.Sum256(b)
		bodies[name] = b
		m.Files = append(m.Files, BundledFile{Name: name, Size: int64(len(b)), SHA256: hex.EncodeToString(sum[:])})
	}
	data, err := pack(m, bodies)
	return m, data, err
}

func pack(m Manifest, bodies map[string][]byte) ([]byte, error) {
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	tw := tar.NewWriter(gz)
	head, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	add := func(name string, b []byte) error {
		if err := tw.WriteHeader(&tar.Header{Name: m.SessionID + "/" + name, Mode: 0o600, Size: int64(len(b)), ModTime: m.Made}); err != nil {
			return err
		}
		_, err := tw.Write(b)
		return err
	}
	if err := add("manifest.json", append(head, '\n')); err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		if err := add(f.Name, bodies[f.Name]); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(tw.Close(), gz.Close()); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
