// Package cloud makes the captures of a case out of the deployment's cloud
// account: it checks the account's variables and shows the orchestrator the
// journals of the case.
package cloud

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/orchestrator"
	"ghostbot/orchestrator/names"
	"ghostbot/safeexec"
)

// Account is where the bot's own captures are made and stored. The zero Account
// means that there are none.
type Account struct {
	Subscription, ResourceGroup, Location, StorageAccount string
	Container                                             string // "": the one that Azure makes for captures
}

// Set reports whether captures can be made. An account that passed Check is whole
// then.
func (a Account) Set() bool { return a.Subscription != "" }

// Identity is what an approval of a cloud command is for: another subscription wants
// another one.
func (a Account) Identity() string {
	if !a.Set() {
		return ""
	}
	return "subscription " + a.Subscription
}

// Check wants all of an account but the container, or nothing. The error names
// the variable, its value and what is accepted. A hidden topology does not go with
// it: what Azure answers is taken into the next command.
func (a Account) Check(hidden bool) error {
	vars := []struct {
		name, v, accepted string
		ok, optional      bool
	}{
		{"GHOST_AZ_SUBSCRIPTION", a.Subscription, "a subscription id", names.Subscription(a.Subscription), false},
		{"GHOST_AZ_RESOURCE_GROUP", a.ResourceGroup, "the name of a resource group", names.Group(a.ResourceGroup), false},
		{"GHOST_AZ_LOCATION", a.Location, "a region such as westeurope", names.Location(a.Location) != "", false},
		{"GHOST_AZ_STORAGE_ACCOUNT", a.StorageAccount, "3 to 24 lower-case letters and digits", names.Account(a.StorageAccount), false},
		{"GHOST_AZ_CONTAINER", a.Container, "3 to 63 lower-case letters, digits and single hyphens", names.Container(a.Container), true},
	}
	set := ""
	for _, v := range vars {
		if v.v != "" && !v.ok {
			return fmt.Errorf("%s: %q is not accepted (accepted: %s)", v.name, v.v, v.accepted)
		}
		if v.v != "" && set == "" {
			set = v.name
		}
	}
	for _, v := range vars {
		if set != "" && v.v == "" && !v.optional {
			return fmt.Errorf("%s is set, so that %s must be, too (accepted: %s)", set, v.name, v.accepted)
		}
	}
	if set != "" && hidden {
		return errors.New("GHOST_ANONYMIZE: captures and a hidden topology do not go together (accepted: true without GHOST_AZ_SUBSCRIPTION)")
	}
	return nil
}

// Leftovers is the line about captures that other cases left.
func (a Account) Leftovers() string {
	if a.Set() {
		return "  [..] What other cases left in the cloud is looked for by: ghostbot investigate --cleanup"
	}
	return "  [OK] No orphaned captures: captures are not configured."
}

// Case is what the captures of one case are built from.
type Case struct {
	SessionID string
	Gate      orchestrator.Gate
	Journal   orchestrator.Journal // of its tasks
	Feed      func(ctx context.Context, after uint64) ([]agent.Entry, error)
	Self      string           // the program's own binary
	Dir       string           // working directory of the case's commands
	Spool     string           // where they run when what they leave is encrypted into Dir; "": there
	Owner     string           // of what is made in the cloud: the installation
	Left      *Left            // nil: nothing is looked for
	Now       func() time.Time // the store's clock: another machine may have to go on by it; nil: this machine's
}

// Captures returns the captures of a case; without an account they say that there
// is none.
func (a Account) Captures(c Case) *orchestrator.Orchestrator {
	if !a.Set() {
		return orchestrator.New(orchestrator.Options{SessionID: c.SessionID})
	}
	if abs, err := filepath.Abs(c.Dir); err == nil { // as the gate makes it, which exists already
		c.Dir = abs
	}
	o := orchestrator.Options{
		SessionID: c.SessionID, Gate: c.Gate, Journal: c.Journal, Past: c.past, Self: c.Self, Dir: c.Dir, Spool: c.Spool, Owner: c.Owner, Now: c.Now,
		Subscription: a.Subscription, ResourceGroup: a.ResourceGroup, Location: a.Location,
		Account: a.StorageAccount, Container: a.Container,
	}
	if c.Left != nil {
		o.Others, o.Files = c.Left.Others, c.Left.Files
	}
	return orchestrator.New(o)
}

// past reads from the journals of the case what its captures need to know.
func (c Case) past(ctx context.Context) (p orchestrator.Past, err error) {
	entries, err := c.Feed(ctx, 0)
	if err != nil {
		return p, err
	}
	var shell []safeexec.Entry
	for _, e := range entries {
		switch {
		case e.Journal == audit.Shell:
			shell = append(shell, safeexec.Entry{N: e.N, ID: e.ID, Kind: e.Kind, Time: e.Time, Hash: e.Hash, Body: e.Body})
		case e.Journal == audit.Tasks && e.Kind == orchestrator.KindTask:
			p.Tasks = append(p.Tasks, e.Body)
		}
	}
	p.Commands = safeexec.Fold(shell)
	return p, nil
}
