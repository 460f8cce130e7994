package workspace

import (
	"errors"
	"mime"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
)

// Errors of files.
var (
	ErrNoFile = errors.New("file not found")
	ErrSize   = errors.New("upload is not as long as announced")
)

// File is an uploaded file. It is private (Channels empty) until it is shared.
type File struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	Alt      string   `json:"alt_text,omitempty"`
	Mime     string   `json:"mimetype"`
	Kind     string   `json:"filetype"`
	User     string   `json:"user"`
	Created  int64    `json:"created"`
	Length   int64    `json:"size"`
	Channels []string `json:"channels"`
	Uploaded bool     `json:"uploaded"`
	Complete bool     `json:"complete"`
	Content  []byte   `json:"content"`
	Secret   string   `json:"secret"`
}

// Reserve announces a file and returns it with the secret of its upload address.
func (w *Workspace) Reserve(userID, name, alt string, length int64) File {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &File{
		ID: w.nextID("F"), Name: name, Title: name, Alt: alt, User: userID, Length: length,
		Created: w.now().Unix(), Channels: []string{}, Secret: Random(16)}
	f.Mime, f.Kind = classify(name)
	w.files[f.ID] = f
	w.dirty = true
	return *f
}

// classify maps a name to a media type and Slack's short file type.
func classify(name string) (mimeType, kind string) {
	ext := strings.ToLower(strings.TrimPrefix(filepath.Ext(name), "."))
	switch ext {
	case "md", "markdown":
		return "text/markdown", "markdown"
	case "txt", "log", "":
		return "text/plain", "text"
	case "json", "jsonl":
		return "application/json", ext
	case "pcap", "pcapng":
		return "application/vnd.tcpdump.pcap", "binary"
	}
	t := mime.TypeByExtension("." + ext)
	if t == "" {
		t = "application/octet-stream"
	}
	t, _, _ = strings.Cut(t, ";")
	return t, ext
}

// Upload stores the content of a reserved file.
func (w *Workspace) Upload(secret string, content []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.files {
		if f.Secret != secret {
			continue
		}
		if int64(len(content)) != f.Length {
			return ErrSize
		}
		f.Content, f.Uploaded = slices.Clone(content), true
		if f.Mime == "application/octet-stream" {
			f.Mime, _, _ = strings.Cut(http.DetectContentType(content), ";")
		}
		w.dirty = true
		return nil
	}
	return ErrNoFile
}

// Finish completes an upload and shares the file in the channels.
func (w *Workspace) Finish(id, title string, channels []string) (File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.files[id]
	if f == nil || !f.Uploaded {
		return File{}, ErrNoFile
	}
	f.Complete = true
	if title != "" {
		f.Title = title
	}
	for _, c := range channels {
		if !slices.Contains(f.Channels, c) {
			f.Channels = append(slices.Clone(f.Channels), c)
		}
	}
	w.dirty = true
	return *f, nil
}

// File finds a completed file.
func (w *Workspace) File(id string) (File, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.files[id]
	if f == nil || !f.Complete {
		return File{}, false
	}
	return *f, true
}

// RemoveFile forgets a file.
func (w *Workspace) RemoveFile(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.files[id]
	delete(w.files, id)
	w.dirty = w.dirty || ok
	return ok
}
