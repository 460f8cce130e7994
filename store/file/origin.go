package file

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"ghostbot/internal/beneath"
)

const (
	originName       = "@origin"
	installationName = "installation.json"
)

// Origin says where a scope was made. A scope whose recorded origin differs
// from where it is now was copied: from another machine, from another state
// directory, from another case, or back from a backup. Its open approvals must
// not count there, because they may count in the original too.
//
// What it cannot show: a restore that overwrites the files in place.
type Origin struct {
	Installation string `json:"installation"` // random, made with the state directory
	Machine      string `json:"machine"`      // hash of the machine's id, of its host name where there is none
	Scope        string `json:"scope"`
	Place        uint64 `json:"place"` // inode of @lock: a copy has another one
}

// Native says whether the scope is where it was made. A scope that does not
// exist is native: it will be made here.
func (db *DB) Native(ctx context.Context, scope string) (native bool, made Origin, err error) {
	o, err := db.enter(ctx, scope)
	if err != nil {
		return false, Origin{}, fmt.Errorf("origin of %s: %w", scope, err)
	}
	defer o.leave()
	if o.dir == nil {
		return true, o.here(), nil
	}
	f, err := o.dir.Open(originName, os.O_RDONLY)
	if notExist(err) {
		return false, Origin{}, nil // nobody knows: not from here
	}
	if err != nil {
		return false, Origin{}, fmt.Errorf("origin of %s: %w", scope, err)
	}
	defer f.Close()
	b, err := f.ReadAll(4096)
	if err != nil || json.Unmarshal(b, &made) != nil {
		return false, Origin{}, nil
	}
	return made == o.here(), made, nil
}

// Here is where the scope is now, as Adopt would record it.
func (db *DB) Here(ctx context.Context, scope string) (Origin, error) {
	o, err := db.enter(ctx, scope)
	if err != nil {
		return Origin{}, fmt.Errorf("place of %s: %w", scope, err)
	}
	defer o.leave()
	return o.here(), nil
}

// Adopt makes this the place where the scope belongs. Whoever calls it has
// voided every approval in it before.
func (db *DB) Adopt(ctx context.Context, scope string) error {
	o, err := db.enter(ctx, scope)
	if err != nil {
		return fmt.Errorf("adopt %s: %w", scope, err)
	}
	defer o.leave()
	if o.dir == nil {
		return nil
	}
	if err := o.claim(); err != nil {
		return fmt.Errorf("adopt %s: %w", scope, o.broke(err))
	}
	if err := o.dir.Sync(); err != nil {
		return fmt.Errorf("adopt %s: %w", scope, o.broke(err))
	}
	return nil
}

// here is the origin of a scope that is made now.
func (o *op) here() Origin {
	here := o.db.origin
	here.Scope = o.name
	if o.lock != nil {
		here.Place = o.lock.Inode()
	}
	return here
}

// claim writes @origin. It is durable when the directory is.
func (o *op) claim() error {
	b, err := json.Marshal(o.here())
	if err != nil {
		return err
	}
	f, err := o.replace(originName, append(b, '\n'), true)
	if err != nil {
		return err
	}
	return f.Close()
}

// installation reads the identity of a state directory, after making one for a
// new directory.
func installation(root *beneath.Dir) (Origin, error) {
	lock, _, err := root.OpenOrCreate(lockName)
	if err != nil {
		return Origin{}, err
	}
	defer lock.Close()
	if err := wait(context.Background(), lock); err != nil {
		return Origin{}, err
	}
	f, err := root.Open(installationName, os.O_RDONLY)
	if notExist(err) {
		return newInstallation(root)
	}
	if err != nil {
		return Origin{}, err
	}
	defer f.Close()
	b, err := f.ReadAll(4096)
	if err != nil {
		return Origin{}, err
	}
	var in Origin
	if json.Unmarshal(b, &in) != nil || in.Installation == "" {
		return Origin{}, fmt.Errorf("%s: not readable; remove it to make a new installation, which voids open approvals", f.Name())
	}
	return Origin{Installation: in.Installation, Machine: machine()}, nil
}

func newInstallation(root *beneath.Dir) (Origin, error) {
	id, err := newGeneration()
	if err != nil {
		return Origin{}, err
	}
	o := op{dir: root}
	in := struct {
		Installation string `json:"installation"`
		Created      string `json:"created"`
	}{hex.EncodeToString(id[:]), time.Now().UTC().Format(time.RFC3339)}
	b, err := json.Marshal(in)
	if err != nil {
		return Origin{}, err
	}
	f, err := o.replace(installationName, append(b, '\n'), true)
	if err != nil {
		return Origin{}, err
	}
	f.Close()
	return Origin{Installation: in.Installation, Machine: machine()}, root.Sync()
}

// machine identifies the machine without giving its id away.
func machine() string {
	id := ""
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if b, err := os.ReadFile(path); err == nil && id == "" {
			id = strings.TrimSpace(string(b))
		}
	}
	if id == "" {
		id, _ = os.Hostname()
	}
	sum := sha256.Sum256([]byte("ghostbot machine " + id))
	return hex.EncodeToString(sum[:16])
}

func newGeneration() (g generation, err error) {
	_, err = rand.Read(g[:])
	return g, err
}

// Installation is the random identity of this state directory, made with it.
func (db *DB) Installation() string { return db.origin.Installation }
