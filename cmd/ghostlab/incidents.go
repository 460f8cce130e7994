package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// incident is one thing that can be investigated. To add one, write its start function and a row.
type incident struct {
	name  string
	about string // what is wrong, for the one who runs the demo; it is not shown in the workspace
	start func(context.Context) (*running, error)
}

// running is an incident in progress.
type running struct {
	symptom string // what a person would say; pasted after "/ghost investigate"
	stop    func() // ends and joins everything that start began
}

// incidents lists everything the demo can break, in the order in which it is shown.
var incidents = []incident{
	{"checkout-502", "The checkout service answers 502, because nothing listens at its upstream.", startCheckout},
	{"accept-queue", "A listener whose accept queue is full: connections hang although the port is open.", startAcceptQueue},
	{"dns-servfail", "A local resolver that answers SERVFAIL for one name, and others well.", startResolver},
	{"expired-certificate", "An HTTPS service whose certificate expired yesterday.", startExpired},
	{"healthy", "Nothing is wrong: the service answers 200.", startHealthy},
}

// selected is the incidents of one name, or all.
func selected(name string) ([]incident, error) {
	if name == "" {
		return incidents, nil
	}
	i := slices.IndexFunc(incidents, func(in incident) bool { return in.name == name })
	if i < 0 {
		var names []string
		for _, in := range incidents {
			names = append(names, in.name)
		}
		return nil, fmt.Errorf("%w: --incident %q: have %s", errUsage, name, strings.Join(names, ", "))
	}
	return incidents[i : i+1], nil
}

// since is a clock time a quarter of an hour ago, as people write it.
func since() string { return time.Now().Add(-15 * time.Minute).Format("15:04") }
