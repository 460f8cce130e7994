package seal

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	plain, with := Dir{}, Dir{Spool: "/dev/shm/g/case"}
	for _, tt := range []struct {
		d                *Dir
		path, kept, file string
		told             string
		ok               bool
	}{
		{&plain, "/w/a.cap", "/w/a.cap", "/w/a.cap", "writes the capture to /w/a.cap on the bot's host; the blob stays", true},
		{&with, "/w/a.cap", "/w/a.cap.age", "/dev/shm/g/case/a.cap", "encrypted to /w/a.cap.age; the blob stays", true},
		{&with, "/w/a.cap.age", "/w/a.cap.age", "/dev/shm/g/case/a.cap", "encrypted to /w/a.cap.age; the blob stays", true},
		{&plain, "/w/a.cap.age", "/w/a.cap.age", "/w/a.cap.age", "", false},
	} {
		file, told, ok := tt.d.Landing(tt.path)
		if ok != tt.ok || file != tt.file || !strings.HasSuffix(told, tt.told) || tt.d.Kept(tt.path) != tt.kept {
			t.Errorf("%+v: %s: %s, %q, %v, kept as %s", *tt.d, tt.path, file, told, ok, tt.d.Kept(tt.path))
		}
	}
}

func TestStem(t *testing.T) {
	for file, want := range map[string]string{"/w/a.cap": "/w/a", "/w/a.cap.age": "/w/a", "a": "a", "a.age": "a"} {
		if got := Stem(file); got != want {
			t.Errorf("Stem(%s) = %s, want %s", file, got, want)
		}
	}
}
