package danger

import (
	"path"
	"strings"
)

// clean brings a path to its plain form: doubled slashes, "." and ".." are
// resolved, links that lead back to the root (/proc/self/root) are followed, a
// home directory in front becomes "~".
func clean(p string) string {
	if strings.HasPrefix(p, "file:") {
		p = "/" + strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(p, "file:"), "//localhost"), "/")
	}
	if strings.HasPrefix(p, "~") {
		user, rest, _ := strings.Cut(p[1:], "/")
		if user == "+" || user == "-" {
			return p
		}
		return path.Join("/home", "~"+user, rest)
	}
	if p == "" {
		return ""
	}
	p = path.Clean(p)
	for {
		rest, ok := procRoot(p)
		if !ok {
			return p
		}
		p = path.Clean("/" + rest)
	}
}

// procRoot strips /proc/PID/root, which is the root directory again.
func procRoot(p string) (string, bool) {
	parts := strings.SplitN(p, "/", 5)
	if len(parts) < 4 || parts[0] != "" || parts[1] != "proc" {
		return "", false
	}
	if parts[3] == "task" && len(parts) == 5 {
		if sub := strings.SplitN(parts[4], "/", 3); len(sub) > 1 && sub[1] == "root" {
			return strings.Join(sub[2:], "/"), true
		}
	}
	if parts[3] != "root" {
		return "", false
	}
	return strings.Join(parts[4:], "/"), true
}

// climbed says where a relative path may end that climbs n levels first: nobody
// knows how deep it starts, and the root is its own parent.
func climbed(p string) (rooted string, n int) {
	for strings.HasPrefix(p, "../") {
		p = p[3:]
		n++
	}
	return "/" + p, n
}

// topDirs are the directories under the root without which a machine, or the
// people on it, lose everything.
var topDirs = map[string]bool{"bin": true, "boot": true, "dev": true, "etc": true, "home": true, "lib": true, "lib32": true, "lib64": true,
	"libx32": true, "opt": true, "proc": true, "root": true, "run": true, "sbin": true, "srv": true, "sys": true, "usr": true, "var": true,
	"mnt": true, "media": true, "Users": true, "System": true, "Library": true, "Applications": true, "private": true, "Volumes": true,
	"snap": true, "nix": true, "data": true}

// deepDirs are system directories one level further down.
var deepDirs = map[string]bool{"usr/bin": true, "usr/sbin": true, "usr/lib": true, "usr/lib32": true, "usr/lib64": true, "usr/share": true,
	"usr/local": true, "usr/libexec": true, "var/lib": true, "var/log": true, "var/spool": true, "var/db": true, "var/run": true,
	"var/mail": true, "etc/systemd": true, "etc/pam.d": true, "etc/ssh": true, "etc/ssl": true, "etc/kubernetes": true,
	"boot/efi": true, "boot/grub": true, "lib/modules": true, "private/etc": true, "private/var": true, "run/systemd": true,
	"var/lib/docker": true, "var/lib/kubelet": true, "var/lib/etcd": true, "var/lib/postgresql": true, "var/lib/mysql": true,
	"var/lib/dpkg": true, "var/lib/rpm": true, "var/lib/containerd": true}

// systemDir reports a path that names the root, a system directory, a home
// directory, or everything inside one of them.
func systemDir(p string) bool {
	// A file: prefix has no meaning to rm; a relative climb may end anywhere.
	if strings.Trim(p, "./") == "" && strings.Count(p, "..") >= 3 {
		return true
	}
	if rooted, n := climbed(path.Clean(p)); n >= 3 {
		p = rooted
	}
	if p == "" || p[0] != '/' && p[0] != '~' && !strings.HasPrefix(p, "file:") {
		return false
	}
	p = clean(p)
	rel := strings.TrimPrefix(p, "/")
	for _, all := range []string{"/*", "/.*", "/.[!.]*", "/{*,.*}", "/."} {
		rel = strings.TrimSuffix(rel, all)
	}
	if rel == "" || rel == "*" || rel == ".*" {
		return true
	}
	first, rest, deeper := strings.Cut(rel, "/")
	if isGlob(first) && !deeper {
		return true // a pattern right under the root takes system directories with it
	}
	if !deeper {
		return topDirs[first]
	}
	if deepDirs[rel] || isGlob(rel) && globsInto(rel) {
		return true
	}
	home := first == "home" || first == "Users"
	return home && !strings.Contains(rest, "/")
}

func isGlob(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '*' || c == '?' || c == '[' {
			return true
		}
	}
	return false
}

func globsInto(rel string) bool {
	for d := range deepDirs {
		if ok, err := path.Match(rel, d); err == nil && ok {
			return true
		}
	}
	return false
}

// harmless devices: writing to them destroys nothing.
var harmless = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdout", "/dev/stderr", "/dev/stdin",
	"/dev/tty", "/dev/pts", "/dev/ptmx", "/dev/console", "/dev/fd", "/dev/shm", "/dev/tcp", "/dev/udp", "/dev/log", "/dev/ttyS0",
	"/dev/kmsg", "/dev/net", "/dev/ppp", "/dev/mqueue", "/dev/hugepages", "/dev/fuse", "/dev/rtc", "/dev/watchdog-off"}

// device reports a path under /dev that is, or may be, a disk or memory.
func device(p string) bool {
	if !strings.Contains(p, "dev") {
		return false
	}
	p = clean(p)
	if rooted, n := climbed(p); n > 0 {
		p = rooted
	}
	if !strings.HasPrefix(p, "/dev/") && !strings.HasPrefix(p, "/devices/") {
		return false
	}
	for _, h := range harmless {
		if p == h || strings.HasPrefix(p, h+"/") {
			return false
		}
	}
	return !strings.HasPrefix(p, "/dev/tty")
}

// vital are files whose loss or change locks everybody out or keeps the
// machine from starting.
var vital = map[string]bool{"/etc/passwd": true, "/etc/shadow": true, "/etc/group": true, "/etc/gshadow": true, "/etc/sudoers": true,
	"/etc/fstab": true, "/proc/sysrq-trigger": true, "/proc/sys/kernel/core_pattern": true, "/proc/sys/kernel/modprobe": true,
	"/etc/ld.so.preload": true}

// writesTo says what a write to path p would destroy, or "".
func writesTo(p string) string {
	if device(p) {
		return "a write to the device " + clean(p)
	}
	if isVital(p) {
		return "a write to " + clean(p)
	}
	return ""
}

func isVital(p string) bool {
	if !strings.Contains(p, "/") {
		return false
	}
	p = clean(p)
	if rooted, n := climbed(p); n > 0 {
		p = rooted
	}
	return vital[p]
}
