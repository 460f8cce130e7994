// Package seal knows where captures lie whose deployment keeps them encrypted, and how
// their files are called. It encrypts nothing: the gate's side of the deployment does. Pure.
package seal

import (
	"path/filepath"
	"strings"
)

// Suffix ends the names of encrypted files.
const Suffix = ".age"

// Dir is the directory of a case. Spool is where commands run when what they leave is
// encrypted into it; "": nothing is encrypted.
type Dir struct{ Spool string }

// Kept is the name of a file in the directory of the case, by the one under which it is
// written. A name that it has already stays.
func (d Dir) Kept(file string) string {
	if d.Spool == "" {
		return file
	}
	return strings.TrimSuffix(file, Suffix) + Suffix
}

// Landing is where the download of a capture writes that is to lie at path, and what
// people are told about it. What was to be encrypted is never written without a key: then ok
// is false.
func (d Dir) Landing(path string) (file, effect string, ok bool) {
	plain, was := strings.CutSuffix(path, Suffix)
	if d.Spool == "" {
		return path, "writes the capture to " + path + " on the bot's host; the blob stays", !was
	}
	return filepath.Join(d.Spool, filepath.Base(plain)), "fetches the capture into the memory of the bot's host and writes it encrypted to " + d.Kept(path) + "; the blob stays", true
}

// Stem is the name of a capture without what says that it is one.
func Stem(file string) string {
	file = strings.TrimSuffix(file, Suffix)
	return strings.TrimSuffix(file, filepath.Ext(file))
}
