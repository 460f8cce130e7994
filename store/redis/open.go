package redis

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"ghostbot/internal/input"
	"ghostbot/store"
)

// Options are where a store is, whose it is, and what it must keep to.
type Options struct {
	// URL is redis://HOST:PORT/DB, rediss:// (TLS), unix:///PATH?db=DB, redis+sentinel://HOST:PORT,HOST:PORT/MASTER/DB
	// or redis+cluster://HOST:PORT,HOST:PORT; rediss+ for TLS. It may name a user, not a password.
	URL          string
	PasswordFile string // its first line is the password
	CAFile       string // certificates that TLS trusts besides the system's; in PEM
	Deployment   string // names the keys; "": ghostbot
	App          string // what else tells deployments apart, such as the Slack app
	Keys         []Key  // the first one signs the deployment's record
	Replicas     int    // how many must confirm a change
	Patience     time.Duration
	Refused      func(error) // if set, is told of every value that a list leaves out, once for each key
}

// Key is a secret that every replica of a deployment has, and no other deployment.
type Key struct {
	ID     string
	Secret []byte
}

// Record is whose store it is.
type Record struct {
	ID  string `json:"id"`
	App string `json:"app,omitempty"`
	Kid string `json:"kid"`
	MAC string `json:"mac"`
}

// ErrForeign means that another deployment keeps its state under the same name.
var ErrForeign = errors.New("the store belongs to another deployment")

var deploymentName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// schemes say what a URL's scheme asks for.
var schemes = map[string]struct{ tls, sentinel, cluster, unix bool }{
	"redis": {}, "rediss": {tls: true}, "unix": {unix: true},
	"redis+sentinel": {sentinel: true}, "rediss+sentinel": {sentinel: true, tls: true},
	"redis+cluster": {cluster: true}, "rediss+cluster": {cluster: true, tls: true},
}

// Check says what is wrong with the options, without connecting.
func (o Options) Check() error {
	_, err := o.client()
	return err
}

func (o Options) client() (*goredis.UniversalOptions, error) {
	if o.Deployment != "" && !deploymentName.MatchString(o.Deployment) {
		return nil, fmt.Errorf("deployment %q is not accepted (accepted: small letters, digits and hyphens, 63 at most)", o.Deployment)
	}
	if o.Replicas < 0 || o.Replicas > 8 {
		return nil, fmt.Errorf("%d replicas are out of range (accepted: 0 to 8)", o.Replicas)
	}
	u, err := parse(o.URL)
	if err != nil {
		return nil, err
	}
	patience := o.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	u.MaxRetries, u.ContextTimeoutEnabled, u.DisableIdentity = -1, true, true
	u.DialTimeout, u.ReadTimeout, u.WriteTimeout, u.PoolTimeout = patience, patience, patience, patience
	u.DialerRetries = 1
	u.PoolSize, u.Protocol = 64, 2
	u.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if o.PasswordFile != "" {
		b, err := input.Secret(o.PasswordFile, maxFile)
		if err != nil {
			return nil, fmt.Errorf("password: %w", err)
		}
		u.Password, _, _ = strings.Cut(string(b), "\n")
		if u.Password = strings.TrimRight(u.Password, "\r"); u.Password == "" {
			return nil, fmt.Errorf("password: %s is empty", o.PasswordFile)
		}
	}
	if o.CAFile != "" && u.TLSConfig == nil {
		return nil, errors.New("certificates are given, and the URL does not ask for TLS (rediss)")
	}
	if o.CAFile != "" {
		pem, err := input.Secret(o.CAFile, maxFile)
		if err == nil {
			pem, err = input.Plain(o.CAFile, pem)
		}
		if err != nil {
			return nil, fmt.Errorf("certificates: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("certificates: %s has none", o.CAFile)
		}
		u.TLSConfig.RootCAs = pool
	}
	return u, nil
}

// maxFile bounds files of a password and of certificates.
const maxFile = 4 << 20

// defaultPatience bounds connecting, sending and reading.
const defaultPatience = 3 * time.Second

// parse reads a URL. Its errors do not quote it: somebody may have put a password there.
func parse(text string) (*goredis.UniversalOptions, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the URL is not one")
	}
	s, ok := schemes[u.Scheme]
	if !ok {
		return nil, fmt.Errorf("scheme %q is not accepted (accepted: redis rediss unix redis+sentinel rediss+sentinel redis+cluster rediss+cluster)", u.Scheme)
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("the URL has a password: put it into a file instead")
	}
	o := &goredis.UniversalOptions{Username: u.User.Username()}
	path := strings.Trim(u.Path, "/")
	switch {
	case s.unix:
		o.Addrs = []string{u.Path}
		path = u.Query().Get("db")
	case s.sentinel:
		o.MasterName, path, _ = strings.Cut(path, "/")
		if o.MasterName == "" {
			return nil, errors.New("the URL of the sentinels lacks the name of the primary (redis+sentinel://HOST:PORT,.../NAME)")
		}
	case s.cluster:
		o.IsClusterMode = true
		if path != "" {
			return nil, errors.New("a cluster has one database only")
		}
	}
	if path != "" {
		if o.DB, err = strconv.Atoi(path); err != nil || o.DB < 0 {
			return nil, fmt.Errorf("database %q is not a number", path)
		}
	}
	if !s.unix {
		port := "6379"
		if s.sentinel {
			port = "26379"
		}
		for host := range strings.SplitSeq(u.Host, ",") {
			addr, err := address(host, port)
			if err != nil {
				return nil, err
			}
			o.Addrs = append(o.Addrs, addr)
		}
	}
	if s.tls {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if len(o.Addrs) == 1 && !s.sentinel {
			o.TLSConfig.ServerName, _, _ = net.SplitHostPort(o.Addrs[0])
		}
	}
	if s.unix && u.Path == "" {
		return nil, errors.New("the URL has no path of a socket")
	}
	return o, nil
}

func address(host, port string) (string, error) {
	if host == "" {
		return "", errors.New("the URL has no host")
	}
	if _, _, err := net.SplitHostPort(host); err != nil {
		return net.JoinHostPort(strings.Trim(host, "[]"), port), nil
	}
	return host, nil
}

// Open connects and makes sure that the store is fit for use and this deployment's: the
// first replica of all makes its record.
func Open(ctx context.Context, o Options) (*DB, error) {
	db, err := connect(o)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if err = db.Fit(ctx); err == nil {
		err = db.claim(ctx)
	}
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("redis: %w", err)
	}
	return db, nil
}

// View connects for somebody who only looks: whose store it is, is not asked.
func View(o Options) (*DB, error) {
	db, err := connect(o)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return db, nil
}

func connect(o Options) (*DB, error) {
	u, err := o.client()
	if err != nil {
		return nil, err
	}
	if o.Deployment == "" {
		o.Deployment = "ghostbot"
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	scripts, err := load()
	if err != nil {
		return nil, err
	}
	quiet()
	return &DB{o: o, client: goredis.NewUniversalClient(u), prefix: "gb1:" + o.Deployment + ":", scripts: scripts, seen: map[string]time.Time{}}, nil
}

// Record is whose store it is; its id names the deployment.
func (db *DB) Record() Record { return db.record }

// claim reads the deployment's record, or makes it.
func (db *DB) claim(ctx context.Context) error {
	if len(db.o.Keys) == 0 {
		return errors.New("no key: replicas of a deployment know each other by one")
	}
	name := db.key(store.Deployment, "id")
	var id [16]byte
	rand.Read(id[:])
	fresh := db.o.sign(hex.EncodeToString(id[:]), db.o.Keys[0])
	data, err := json.Marshal(fresh)
	if err != nil {
		return err
	}
	if err := db.client.SetNX(ctx, name, data, 0).Err(); err != nil {
		return db.failed(err, name)
	}
	text, err := db.client.Get(ctx, name).Bytes()
	if err != nil {
		return db.failed(err, name)
	}
	r, err := db.ours(text)
	if err != nil {
		return err
	}
	db.record, db.kept = r, text
	if r.Kid != db.o.Keys[0].ID { // the key was changed: the record follows it
		if data, err = json.Marshal(db.o.sign(r.ID, db.o.Keys[0])); err == nil {
			err = db.client.Set(ctx, name, data, 0).Err()
			db.kept = data
		}
	}
	return err
}

// Whole puts the deployment's record back, as it was, when the store has lost it, and reports that. [ErrForeign] when
// another one stands there by now, which a process made that started meanwhile.
func (db *DB) Whole(ctx context.Context) (back bool, err error) {
	name := db.key(store.Deployment, "id")
	if back, err = db.client.SetNX(ctx, name, db.kept, 0).Result(); err != nil {
		return false, db.failed(err, name)
	}
	if back {
		db.known.Clear()
		return true, nil
	}
	text, err := db.client.Get(ctx, name).Bytes()
	if err != nil {
		return false, db.failed(err, name)
	}
	r, err := db.ours(text)
	if err == nil && r.ID != db.record.ID {
		err = fmt.Errorf("%w: its record was made anew, with another id; start this replica again", ErrForeign)
	}
	return false, err
}

// ours reads the deployment's record, which one of our keys must have made.
func (db *DB) ours(text []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(text, &r); err != nil || r.ID == "" {
		return r, fmt.Errorf("%w: the record of deployment %q is not readable", ErrPoisoned, db.o.Deployment)
	}
	for _, k := range db.o.Keys {
		if k.ID == r.Kid && hmac.Equal([]byte(db.o.sign(r.ID, k).MAC), []byte(r.MAC)) {
			return r, nil
		}
	}
	why := fmt.Sprintf("it was made with key %q", r.Kid)
	if r.App != db.o.App {
		why += " for another Slack app"
	}
	return r, fmt.Errorf("%w: %s; give this one a name of its own (GHOST_DEPLOYMENT) or a Redis of its own", ErrForeign, why)
}

func (o Options) sign(id string, k Key) Record {
	h := hmac.New(sha256.New, k.Secret)
	for _, part := range []string{"ghostbot deployment 1", o.Deployment, o.App, id, k.ID} {
		fmt.Fprintf(h, "%d %s\n", len(part), part)
	}
	return Record{ID: id, App: o.App, Kid: k.ID, MAC: hex.EncodeToString(h.Sum(nil))}
}
