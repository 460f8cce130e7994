// Package metrics counts for Prometheus what cases, people, commands, the model,
// Slack and the store do. It is a watcher of package observe and holds nothing
// but numbers.
//
// Every label has a bounded set of values, written down in this package; what is
// none of them is "other". So no case, person, host, command or text of anybody
// becomes a label, whatever a journal holds.
//
// Counters begin with the process. What a case did before this process took it up
// is not counted again: its former holder has.
package metrics

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Build names the binary.
type Build struct{ Version, Commit, Go string }

// Metrics are all numbers of one process. Use New.
type Metrics struct {
	registry *prometheus.Registry

	held      *prometheus.GaugeVec
	opened    *prometheus.CounterVec
	concluded *prometheus.CounterVec

	approvals    *prometheus.CounterVec
	approvalTime *prometheus.HistogramVec
	denials      *prometheus.CounterVec
	commands     *prometheus.CounterVec
	commandTime  *prometheus.HistogramVec
	captures     *prometheus.CounterVec

	brainTime *prometheus.HistogramVec
	requests  prometheus.Counter
	tokens    *prometheus.CounterVec
	cost      prometheus.Counter

	slackCalls *prometheus.CounterVec
	slackTime  *prometheus.HistogramVec
	limited    *prometheus.CounterVec

	storeTime *prometheus.HistogramVec
	leases    *prometheus.CounterVec
	entries   *prometheus.CounterVec
	entryTime *prometheus.HistogramVec

	mu      sync.Mutex
	cases   map[string]*state
	paused  map[string]string   // what cases wait for whose lease alone is kept
	writing map[*time.Time]bool // when each entry that is on its way was begun
}

// Buckets in seconds. People answer in minutes, models in seconds, disks in
// milliseconds.
var (
	people  = []float64{5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 14400, 86400}
	models  = []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120}
	runs    = []float64{.01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 600}
	storage = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
)

const prefix = "ghostbot_"

// New makes all metrics; heard reports whether Slack can be heard, ready whether /readyz is content. Both are
// asked for every page.
func New(b Build, heard, ready func() bool) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), cases: map[string]*state{}, paused: map[string]string{}, writing: map[*time.Time]bool{}}
	m.held = m.gauge("cases", "Cases that this process holds the lease of, by what they wait for.", "state")
	m.opened = m.counter("cases_taken_total", "Cases that this process took up, by whether they are new.", "kind")
	m.concluded = m.counter("cases_concluded_total", "Cases that ended, by who or what ended them.", "ended_by")
	m.approvals = m.counter("approvals_total", "Decisions about risky commands.", "outcome")
	m.approvalTime = m.histogram("approval_duration_seconds", "Time from a proposal to its decision.", people, "outcome")
	m.denials = m.counter("denials_total", "Commands that were denied, by reason.", "reason")
	m.commands = m.counter("commands_total", "Commands that came to an end, by the gate's class.", "class", "outcome")
	m.commandTime = m.histogram("command_duration_seconds", "Run time of commands.", runs, "class")
	m.captures = m.counter("capture_tasks_total", "Packet captures by the states that they reached.", "state")
	m.brainTime = m.histogram("brain_turn_duration_seconds", "Time that a brain takes to answer.", models, "brain", "outcome")
	m.requests = m.counter("model_requests_total", "Requests that a model answered.").WithLabelValues()
	m.tokens = m.counter("model_tokens_total", "Tokens of a model.", "kind")
	m.cost = m.counter("model_cost_usd_total", "Dollars that a model cost, estimated from list prices.").WithLabelValues()
	m.slackCalls = m.counter("slack_requests_total", "Calls of Slack's Web API.", "method", "outcome")
	m.slackTime = m.histogram("slack_request_duration_seconds", "Time of calls of Slack's Web API.", models, "method")
	m.limited = m.counter("slack_rate_limited_total", "Calls that Slack refused because there were too many.", "method")
	m.storeTime = m.histogram("store_operation_duration_seconds", "Time of operations of the store.", storage, "operation", "outcome")
	m.leases = m.counter("lease_operations_total", "Leases of cases and of the deployment.", "operation", "outcome")
	m.entries = m.counter("journal_entries_total", "Journal entries that became durable.", "journal")
	m.entryTime = m.histogram("journal_append_duration_seconds", "Time until an entry is durable in the store and the file.", storage, "journal")
	m.build(b)
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + "cases_dormant", Help: "Cases held that wait for people, of which this process keeps the lease only."}, m.dormant),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + "journal_lag_entries", Help: "Entries of the cases held here that the store has and the files here have not."}, m.lag),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + "journal_write_age_seconds", Help: "Age of the oldest entry that is being written and not durable yet."}, m.age),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + "slack_connected", Help: "1 while Slack can be heard."}, yes(heard)),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + "ready", Help: "1 while /readyz says ok."}, yes(ready)),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// yes is 1 for true.
func yes(ask func() bool) func() float64 {
	return func() float64 {
		if ask() {
			return 1
		}
		return 0
	}
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) build(b Build) {
	v := m.gauge("build_info", "1, with the binary's version.", "version", "commit", "goversion")
	v.WithLabelValues(b.Version, b.Commit, b.Go).Set(1)
}

func (m *Metrics) dormant() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return float64(len(m.paused))
}

// lag is how far the files are behind the store. Entries are written to the store first,
// so that one is on its way at most; what stays is a disk that takes nothing.
func (m *Metrics) lag() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var n uint64
	for _, c := range m.cases {
		n += c.stored - min(c.stored, c.filed)
	}
	return float64(n)
}

// age is how long the oldest unfinished write has been on its way: a store or a
// disk that hangs shows here while nothing is counted anywhere else.
func (m *Metrics) age() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var longest time.Duration
	for since := range m.writing {
		longest = max(longest, time.Since(*since))
	}
	return longest.Seconds()
}

// Handler is the page that Prometheus reads.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 3, Timeout: 5 * time.Second})
}
