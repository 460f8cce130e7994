package fault

// Op is a kind of step.
type Op string

// The steps besides a write. Every one names a file; Rename names two.
const (
	Sync     Op = "fsync"
	SyncDir  Op = "fsync-dir"
	Create   Op = "create"
	Rename   Op = "rename"
	Remove   Op = "remove"
	Truncate Op = "truncate"
	Mkdir    Op = "mkdir"
)
