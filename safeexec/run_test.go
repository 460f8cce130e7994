//go:build gate

package safeexec

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	l := newLab(t, approve)
	l.program("uptime", "echo hello; echo oops >&2; exit 3")
	l.program("frob", "echo $1")
	t.Logf("%+v", l.run("uptime"))
	t.Logf("%+v", l.run("frob x"))
	t.Log(l.j.kinds())
}
