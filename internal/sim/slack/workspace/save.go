package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
)

// saved is the file format. Triggers and response URLs are left out: they do not outlive the
// process on purpose.
type saved struct {
	Version  int                  `json:"version"`
	Secrets  map[string]string    `json:"secrets"`
	Channels []Channel            `json:"channels"`
	Messages map[string][]Message `json:"messages"`
	Files    []File               `json:"files"`
	Views    []View               `json:"views"`
	Homes    []View               `json:"homes"`
	Pages    []Page               `json:"pages"`
	LastTS   int64                `json:"last_ts"`
	Serial   int64                `json:"serial"`
}

func formatTS(micro int64) string { return fmt.Sprintf("%d.%06d", micro/1e6, micro%1e6) }

// Save writes the state to path when it changed since the last call. The file is replaced in one
// step, so that a crash leaves the old or the new state.
func (w *Workspace) Save(path string) error {
	raw, err := w.snapshot()
	if err != nil || raw == nil {
		return err
	}
	if err := replace(path, raw); err != nil {
		w.mu.Lock()
		w.dirty = true
		w.mu.Unlock()
		return fmt.Errorf("saving workspace: %w", err)
	}
	return nil
}

func (w *Workspace) snapshot() ([]byte, error) {
	s, dirty := w.collect()
	if !dirty {
		return nil, nil
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding workspace: %w", err)
	}
	return raw, nil
}

// collect copies the state, so that nobody has to wait while it is encoded.
func (w *Workspace) collect() (saved, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dirty {
		return saved{}, false
	}
	w.dirty = false
	s := saved{Version: 1, Secrets: maps.Clone(w.secrets), Messages: map[string][]Message{}, Pages: slices.Clone(w.pages),
		LastTS: w.lastTS, Serial: w.serial}
	for _, c := range w.channels {
		s.Channels = append(s.Channels, c.copy())
		for _, m := range c.messages {
			s.Messages[c.ID] = append(s.Messages[c.ID], *m.copy())
		}
	}
	for _, f := range w.files {
		s.Files = append(s.Files, *f)
	}
	sort.Slice(s.Files, func(i, j int) bool { return s.Files[i].ID < s.Files[j].ID })
	for _, v := range w.views {
		s.Views = append(s.Views, *v)
	}
	for _, v := range w.homes {
		s.Homes = append(s.Homes, *v)
	}
	return s, true
}

func replace(path string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// Load fills the workspace from a file that Save wrote; a file that does not exist changes nothing.
// People and groups always come from the seed.
func (w *Workspace) Load(path string) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("loading workspace: %w", err)
	}
	var s saved
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("loading workspace %s: %w", path, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restore(s)
	return nil
}

func (w *Workspace) restore(s saved) {
	for k, v := range s.Secrets {
		w.secrets[k] = v
	}
	for _, c := range s.Channels {
		have := w.channel(c.ID)
		if have == nil {
			have = &channel{Channel: c}
			w.channels = append(w.channels, have)
		}
		have.Pinned = c.Pinned
		for _, u := range c.Members {
			if !slices.Contains(have.Members, u) {
				have.Members = append(have.Members, u)
			}
		}
		have.messages = nil
		for _, m := range s.Messages[c.ID] {
			have.messages = append(have.messages, m.copy())
		}
	}
	for _, f := range s.Files {
		w.files[f.ID] = &f
	}
	for _, v := range s.Views {
		w.views = append(w.views, &v)
	}
	for _, v := range s.Homes {
		w.homes[v.User] = &v
	}
	w.pages, w.lastTS, w.serial = s.Pages, s.LastTS, s.Serial
}
