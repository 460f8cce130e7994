package danger

import (
	"path"
	"slices"
	"strings"
)

// check looks at one command of a program and says what it would destroy.
type check func(argv []string) string

// programs with their checks, by name without folders.
var programs = map[string]check{
	"rm": removes, "unlink": removes, "rmdir": removes, "srm": removes, "shred": shreds, "wipe": shreds, "scrub": shreds,
	"rsync": mirrors, "mv": moves, "chmod": recursive, "chown": recursive, "chgrp": recursive, "setfacl": recursive, "chattr": recursive,
	"dd": copies, "dcfldd": copies, "dc3dd": copies, "tee": writes, "cp": writesLast, "install": writesLast, "truncate": writes,
	"ln": links, "userdel": word("the account root deleted", "root"), "deluser": word("the account root deleted", "root"), "xargs": feeds,
	"fallocate": writes, "badblocks": badblocks, "tar": writesFile, "sponge": writes,
	"mke2fs": always("a file system made on a device"), "newfs": always("a file system made on a device"),
	"mkswap": always("a swap area made on a device"), "mkntfs": always("a file system made on a device"),
	"mkdosfs": always("a file system made on a device"), "mkreiserfs": always("a file system made on a device"),
	"wipefs": always("file system signatures wiped"), "blkdiscard": always("a device's blocks discarded"),
	"sgdisk": partition, "gdisk": partition, "sfdisk": partition, "parted": partition, "cfdisk": partition, "fdisk": partition,
	"hdparm": word("a disk erased", "--security-erase", "--security-erase-enhanced", "--trim-sector-ranges", "--write-sector", "--yes-i-know-what-i-am-doing"),
	"nvme":   word("a disk erased", "format", "sanitize", "write-zeroes", "delete-ns", "dsm"),
	"zpool":  word("a storage pool destroyed", "destroy", "labelclear"), "zfs": word("a file system destroyed", "destroy"),
	"lvremove": always("a volume removed"), "vgremove": always("a volume group removed"), "pvremove": always("a physical volume removed"),
	"lvm":        word("a volume removed", "lvremove", "vgremove", "pvremove"),
	"mdadm":      word("a disk array taken apart", "--zero-superblock", "--stop", "-S"),
	"cryptsetup": word("an encrypted volume destroyed", "luksFormat", "luksErase", "erase", "luksKillSlot", "reencrypt"),
	"dmsetup":    word("device mappings removed", "remove_all", "wipe_table"), "diskutil": word("a disk erased", "eraseDisk", "eraseVolume", "partitionDisk", "zeroDisk", "secureErase", "randomDisk"),
	"btrfs": word("a file system changed beyond repair", "device delete"), "flashrom": word("firmware overwritten", "-w", "--write", "-E", "--erase"),
	"flash_erase": always("flash memory erased"), "efibootmgr": word("boot entries deleted", "-B", "--delete-bootnum"),
	"grub-install": always("the boot loader overwritten"),
	"shutdown":     always("the machine shut down"), "reboot": always("the machine restarted"), "halt": always("the machine halted"),
	"poweroff": always("the machine powered off"), "pm-suspend": always("the machine suspended"), "pm-hibernate": always("the machine suspended"),
	"init": runlevel, "telinit": runlevel, "systemctl": systemctl, "loginctl": word("the machine restarted or powered off", "reboot", "poweroff", "halt", "suspend", "hibernate", "kexec"),
	"kexec":     kexec,
	"busctl":    manager,
	"dbus-send": manager, "gdbus": manager, "qdbus": manager,
	"ipmitool": ipmi, "kill": kills, "killall5": always("every process killed"), "pkill": killsAll(pkill), "killall": killsAll(killall), "skill": killsAll(skill), "fuser": users,
}

// families are programs with a common prefix, as in mkfs.ext4.
var families = map[string]check{"mkfs": always("a file system made on a device"), "mkfs.": always("a file system made on a device"),
	"newfs_": always("a file system made on a device")}

func always(why string) check { return func([]string) string { return why } }

// word reports why when one of the words is an argument.
func word(why string, words ...string) check {
	return func(argv []string) string {
		line := " " + strings.Join(argv[1:], " ") + " "
		if _, ok := firstOf(words, func(w string) bool { return strings.Contains(line, " "+w+" ") }); ok {
			return why
		}
		return ""
	}
}

// globbed lists the dangerous programs that a pattern like r?boot stands for.
// A pattern without two plain letters stands for anything and is not followed.
func globbed(pattern string) []string {
	if len(strings.Trim(pattern, "*?[]")) < 2 {
		return nil
	}
	var names []string
	for name := range programs {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// bundled reports a short option in any bundle, or a long one, shortened forms
// included.
func bundled(argv []string, short, long string) bool {
	for _, a := range argv[1:] {
		if a == "--" {
			return false
		}
		if strings.HasPrefix(a, "--") {
			if len(a) > 3 && strings.HasPrefix(long, a) {
				return true
			}
		} else if len(a) > 1 && a[0] == '-' && strings.ContainsAny(a[1:], short) {
			return true
		}
	}
	return false
}

// operands are the arguments that are no options.
func operands(argv []string) []string {
	var out []string
	for i, a := range argv[1:] {
		if a == "--" {
			return append(out, argv[i+2:]...)
		}
		if len(a) < 2 || a[0] != '-' {
			out = append(out, a)
		}
	}
	return out
}

func removes(argv []string) string {
	if argv[0] == "" {
		return ""
	}
	tree := bundled(argv, "rR", "--recursive")
	for _, o := range operands(argv) {
		switch {
		case tree && systemDir(o):
			return "a system or home directory deleted: " + clean(o)
		case device(o):
			return "a device deleted: " + clean(o)
		case isVital(o):
			return "deletion of " + clean(o)
		}
	}
	return ""
}

func shreds(argv []string) string {
	o, ok := firstOf(operands(argv), func(o string) bool { return device(o) || systemDir(o) || isVital(o) })
	if !ok {
		return ""
	}
	return "overwriting of " + clean(o)
}

func mirrors(argv []string) string {
	ops := operands(argv)
	if len(ops) > 1 && systemDir(ops[len(ops)-1]) && (index(argv, "--delete") > 0 || hasPrefix(argv, "--delete-") || hasPrefix(argv, "--del")) {
		return "a system directory emptied by a mirror: " + clean(ops[len(ops)-1])
	}
	return ""
}

func hasPrefix(argv []string, p string) bool {
	return slices.ContainsFunc(argv, func(a string) bool { return strings.HasPrefix(a, p) })
}

func moves(argv []string) string {
	ops := operands(argv)
	if o, ok := firstOf(ops[:max(len(ops)-1, 0)], systemDir); ok {
		return "a system or home directory moved away: " + clean(o)
	}
	return writesLast(argv)
}

func recursive(argv []string) string {
	o, ok := firstOf(operands(argv), systemDir)
	if !ok || !bundled(argv, "R", "--recursive") {
		return ""
	}
	return "permissions of a system or home directory changed throughout: " + clean(o)
}

// firstOf returns the first operand of which is holds.
func firstOf(operands []string, is func(string) bool) (string, bool) {
	i := slices.IndexFunc(operands, is)
	if i < 0 {
		return "", false
	}
	return operands[i], true
}

func copies(argv []string) string {
	for _, a := range argv[1:] {
		key, file, _ := strings.Cut(a, "=")
		if why := writesTo(file); why != "" && (key == "of" || key == "ofs" || key == "output") {
			return why
		}
	}
	return ""
}

func writes(argv []string) string {
	for _, o := range operands(argv) {
		if why := writesTo(o); why != "" {
			return why
		}
	}
	return ""
}

// links reports a link put in the place of a vital file.
func links(argv []string) string {
	if !bundled(argv, "f", "--force") {
		return ""
	}
	return writesLast(argv)
}

// feeds reports a credential store read into arguments.
func feeds(argv []string) string {
	for i, a := range argv[1:] {
		file, glued := strings.CutPrefix(a, "--arg-file=")
		switch {
		case (a == "-a" || a == "--arg-file") && i+2 < len(argv):
			file, glued = argv[i+2], true
		case len(a) > 2 && strings.HasPrefix(a, "-a"):
			file, glued = a[2:], true
		}
		if glued && credentialFile(file) {
			return "a credential store read: " + file
		}
	}
	return ""
}

func writesLast(argv []string) string {
	ops := operands(argv)
	if len(ops) < 2 || hasPrefix(argv, "--target-directory=") || index(argv, "-t") > 0 {
		return ""
	}
	return writesTo(ops[len(ops)-1])
}

func writesFile(argv []string) string {
	for i, a := range argv {
		bundle := i == 1 && !strings.Contains(a, "/") || len(a) > 1 && a[0] == '-' && a[1] != '-'
		if bundle && strings.HasSuffix(a, "f") && strings.ContainsAny(a, "cru") && i+1 < len(argv) {
			return writesTo(argv[i+1])
		}
		if strings.HasPrefix(a, "--file=") && bundled(argv, "cru", "--create") {
			return writesTo(a[len("--file="):])
		}
	}
	return ""
}

func badblocks(argv []string) string {
	if bundled(argv, "w", "--write") {
		return writes(argv)
	}
	return ""
}

// partition reports a change of a partition table; listing one is none.
func partition(argv []string) string {
	for _, a := range argv[1:] {
		switch a {
		case "-l", "--list", "-d", "--dump", "-s", "--show-size", "-p", "--print", "print", "-v", "--verify", "-V", "--version", "-h", "--help", "-x":
			return ""
		}
	}
	for _, o := range operands(argv) {
		if device(o) {
			return "a partition table changed: " + clean(o)
		}
	}
	return ""
}

func runlevel(argv []string) string {
	for _, o := range operands(argv) {
		switch o {
		case "0", "6", "1", "s", "S", "single", "halt", "reboot":
			return "the machine taken out of service (run level " + o + ")"
		}
	}
	return ""
}

// downVerbs of systemctl take the machine out of service; so do the targets
// of the same names.
var downVerbs = map[string]bool{"reboot": true, "poweroff": true, "halt": true, "kexec": true, "emergency": true, "rescue": true,
	"soft-reboot": true, "suspend": true, "hibernate": true, "hybrid-sleep": true, "suspend-then-hibernate": true, "exit": true,
	"switch-root": true, "sleep": true}

var downTargets = map[string]bool{"shutdown": true, "runlevel0": true, "runlevel1": true, "runlevel6": true, "ctrl-alt-del": true, "final": true, "umount": true}

func systemctl(argv []string) string {
	verb := ""
	for i := 1; i < len(argv); i++ {
		a := argv[i]
		switch {
		case strings.HasPrefix(a, "-"):
			if verb == "" && len(a) == 2 && strings.Contains("HMtpPnso", a[1:]) {
				i++
			}
		case verb == "":
			if verb = a; downVerbs[verb] {
				return "the machine taken out of service (systemctl " + verb + ")"
			}
		case verb == "isolate" || verb == "start" || verb == "restart" || verb == "set-default":
			t, isTarget := strings.CutSuffix(a, ".target")
			if (isTarget || verb == "isolate") && (downVerbs[t] || downTargets[t]) {
				return "the machine taken out of service (systemctl " + verb + " " + a + ")"
			}
		}
	}
	return ""
}

func kexec(argv []string) string {
	if bundled(argv, "e", "--exec") || bundled(argv, "f", "--force") {
		return "another kernel started"
	}
	return ""
}

// manager reports a power request over the system bus.
func manager(argv []string) string {
	for _, a := range argv[1:] {
		last := a[strings.LastIndexAny(a, ".")+1:]
		switch last {
		case "Reboot", "PowerOff", "Halt", "Suspend", "Hibernate", "KExec", "SoftReboot", "RebootWithFlags", "PowerOffWithFlags", "HaltWithFlags":
			return "the machine restarted or powered off over the system bus"
		}
	}
	return ""
}

func ipmi(argv []string) string {
	line := " " + strings.Join(argv, " ") + " "
	for _, verb := range []string{" off ", " cycle ", " reset ", " soft ", " diag "} {
		if strings.Contains(line, " power"+verb) {
			return "the machine powered off or reset"
		}
	}
	return ""
}
