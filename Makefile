# Two commands matter on a fresh machine: make demo, make test. Both install what
# is missing (see scripts/deps) and are safe to repeat.

GO      ?= go
BIN     := bin
SIM     := internal/sim/slack/conformance
GOFLAGS += -trimpath
export GOFLAGS

# where tests that skip for want of the real az say so; a new name each time, so that none is cached
SKIPS := $(shell mktemp -u)

.PHONY: image-check outage fleet foreign conformance approvals soak bench-ack triage-rounds azure record policy-page help build demo test check unit faults e2e chaos bench bench-latency bench-waiting bench-scale bench-pcap mutants screenshots clean deps-run deps-test deps-bench fmt

help:
	@echo "make demo    a local Slack workspace with ghostbot in it and broken services to investigate"
	@echo "make test    everything that must hold: format, vet, staticcheck, tests with the race detector, end to end"
	@echo "make build   bin/ghostbot and bin/ghostlab; make clean  removes them; make fmt  formats"
	@echo "make check   format, vet, staticcheck; make unit  tests with the race detector; make faults  injected faults; make e2e  the real program (parts of make test)"
	@echo "make chaos   kill the bot at every write of a case (slow); make test runs a sample"
	@echo "make outage  Redis away for 1 and 5 minutes; make fleet  300 cases on three disturbed replicas; make foreign  odd values in Redis and a large journal (all are in make chaos)"
	@echo "make azure   the real az against the local Azure, the long form"
	@echo "make triage-rounds  10,000 rounds of the triage against recycled process numbers"
	@echo "make approvals   2,000 approvals through a bad network, on a simulated clock; make soak   an hour of cases; make bench-ack   acknowledgements beside Bolt"
	@echo "make conformance  the official Slack clients for Node against the simulated workspace, the long form"
	@echo "make bench   benchmarks of the packages; make bench-latency what people feel; make bench-waiting 500 cases that wait;"
	@echo "             make bench-scale replicas on one Redis; make bench-pcap captures; docs/benchmarks.md keeps the results"
	@echo "make image-check  builds the slim image with buildah on debootstrap's Debian and tries it (root; minutes)"
	@echo "make mutants  100,000 captures with changed bytes"
	@echo "make record  one case with a real model (GEMINI_API_KEY), kept without the key as test data"
	@echo "make screenshots  the pictures of the documents, from the demo; make policy-page  docs/policy.md, from the tables"

deps-run:
	@scripts/deps run

deps-test:
	@scripts/deps test
	@[ ! -f $(SIM)/package-lock.json ] || [ -e $(SIM)/node_modules/.package-lock.json -a $(SIM)/node_modules/.package-lock.json -nt $(SIM)/package-lock.json ] || \
		{ echo "== npm ci (official Slack clients and a browser driver, for the tests)"; cd $(SIM) && npm ci --no-audit --no-fund --ignore-scripts --silent && touch node_modules/.package-lock.json; }

	@# the program that tries the alert rules, likewise
	@scripts/promtool >/dev/null || true
	@# the real az and its storage: where they cannot be had the tests that need them skip, and are counted
	@scripts/azure-cli >/dev/null || true
	@scripts/azurite >/dev/null || true

deps-bench:
	@scripts/deps bench

build:
	@echo "== build"
	@$(GO) build -o $(BIN)/ ./cmd/ghostbot ./cmd/ghostlab

demo: deps-run build
	@$(BIN)/ghostlab demo

test: deps-test build check unit faults
	@scripts/skipped $(SKIPS)
	@echo "== all checks passed"

check:
	@echo "== format"
	@bad=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); [ -z "$$bad" ] || { echo "gofmt would change:"; echo "$$bad"; exit 1; }
	@echo "== vet"
	@$(GO) vet ./...
	@$(GO) vet -tags faultinject ./...
	@echo "== staticcheck"
	@$(GO) tool staticcheck ./...

unit:
	@echo "== tests with the race detector"
	@rm -f $(SKIPS)
	@# vet has been run (check); two packages at a time, but for those with real time-outs (scripts/alone). A program with the race detector
	@# sleeps for a second before it ends, to hear of late races: each verb of each script, too
	@lock=$$(mktemp) && trap 'rm -f $$lock' EXIT && TEST_SKIPS=$(SKIPS) GORACE=atexit_sleep_ms=50 LOCK=$$lock bash -o pipefail -c \
		'$(GO) test -race -vet=off -p 2 -exec "\"$(CURDIR)/scripts/alone\" $$LOCK" -timeout 35m -v ./... 2>&1 | scripts/results'

faults:
	@echo "== tests with injected faults"
	@$(GO) test -vet=off -tags faultinject -timeout 20m ./audit ./store/file ./internal/fault/...

e2e:
	@echo "== end to end, with a sample of the kill points"
	@$(GO) test -timeout 25m -count 1 -v ./internal/e2e/...

azure:
	@echo "== the real az against the local Azure: every recorded call, and captures from end to end"
	@scripts/azure-cli >/dev/null && scripts/azurite >/dev/null
	@$(GO) test -timeout 30m -count 1 -v ./internal/sim/azure/...
	@GHOST_AZURE=all $(GO) test -timeout 30m -count 1 -v -run WithTheRealAz ./internal/e2e

chaos:
	@echo "== kill at every write of a case"
	@GHOST_CHAOS=all $(GO) test -timeout 6h -count 1 -v -run Kill ./internal/e2e/...
	@$(MAKE) --no-print-directory outage fleet foreign

outage:
	@echo "== Redis away for one minute and for five"
	@for s in $${GHOST_OUTAGE_SECONDS:-60 300}; do GHOST_OUTAGE_SECONDS=$$s $(GO) test -timeout 30m -count 1 -v -run '^TestOutage$$' ./internal/e2e/... || exit 1; done

image-check:
	@scripts/image-check

fleet:
	@echo "== three replicas of the bot, a Redis with two replicas that both confirm, 300 cases, disturbed for 10 minutes"
	@GHOST_FLEET_CASES=$${GHOST_FLEET_CASES:-300} GHOST_FLEET_SECONDS=$${GHOST_FLEET_SECONDS:-600} $(GO) test -timeout 2h -count 1 -v -run '^TestFleet$$' ./internal/e2e/...

foreign:
	@echo "== every kind of key in Redis written over in every way"
	@GHOST_POISONS=4 $(GO) test -timeout 30m -count 1 -v -run '^TestPoisonedKeys$$' ./internal/e2e/...
	@echo "== a journal of 100 MB"
	@GHOST_JOURNAL_MB=100 $(GO) test -timeout 30m -count 1 -v -run '^TestLargeJournal$$' ./internal/e2e/...

approvals:
	@echo "== 2,000 approvals by 50 people in 40 channels through a bad network, on a simulated clock (minutes)"
	@GHOST_APPROVALS=$${GHOST_APPROVALS:-2000} $(GO) test -timeout 120m -count 1 -v -run '^TestApprovals$$' ./bot/slack

soak:
	@echo "== cases for an hour, with connections that are cut every two seconds"
	@GHOST_SOAK=$${GHOST_SOAK:-60m} $(GO) test -timeout 120m -count 1 -v -run '^TestSoak$$' ./internal/e2e

conformance: deps-test
	@echo "== the official Slack clients for Node, the long form (two minutes)"
	@GHOST_CONFORMANCE=1 $(GO) test -timeout 10m -count 1 -v -run '^(TestBolt|TestWebClient|TestSocketMode|TestIdleSideBySide)$$' ./internal/sim/slack

bench-ack: deps-test
	@echo "== acknowledgements with 1,000 open cases, beside a minimal Bolt app (some minutes)"
	@GHOST_CASES=$${GHOST_CASES:-1000} $(GO) test -run '^$$' -bench '^BenchmarkAck$$' -benchtime 1x -timeout 60m ./bot/slack

bench:
	@$(GO) test -run '^$$' -bench . -benchmem $$($(GO) list ./... | grep -v internal/e2e)

bench-latency:
	@echo "== slash command to first line; Approve to process start (200 samples over 20 channels)"
	@$(GO) test -run '^$$' -bench 'CommandToFirstLine|ApproveToStart' -benchtime 200x -timeout 60m ./internal/e2e/

bench-waiting:
	@echo "== cases that wait for an approval: memory, processor time, and the latency of 200 further ones (10 min for 500)"
	@GHOST_WAITING=$${GHOST_WAITING:-500} $(GO) test -run '^$$' -bench WaitingCases -benchtime 200x -timeout 60m ./internal/e2e/

# GHOST_SCALE_ONLY runs a part; GHOST_SCALE_TURNS, GHOST_SCALE_SECONDS, GHOST_SCALE_SLOTS, GHOST_SCALE_WAITING, GHOST_SCALE_CLICKS,
# GHOST_SCALE_HELD, GHOST_SCALE_BRAIN and GHOST_SCALE_KILLS make it shorter
bench-scale:
	@echo "== what cases cost where replicas share a Redis: commands and bytes, throughput, 10,000 waiting cases, take-over (GHOST_SCALE_WAITING=1000 and others make it shorter)"
	@$(GO) test -run '^$$' -bench '^BenchmarkScale$$' -benchtime 1x -timeout 120m ./internal/e2e/

triage-rounds:
	@echo "== 100,000 processes; then plan, apply, verify against recycled process numbers (make test takes 5,000 and 100)"
	@TRIAGE_PROCESSES=100000 $(GO) test -count 1 -timeout 30m -run '^TestCrowd$$' -v ./triage
	@TRIAGE_ROUNDS=$${TRIAGE_ROUNDS:-10000} $(GO) test -count 1 -timeout 120m -run '^TestRounds$$' -v ./cmd/ghostbot/triage

# needs 1.3 GB at a time in the temporary directory, and some minutes
bench-pcap: deps-bench build
	@echo "== ghostbot pcap beside cat, tcptrace and tshark"
	@$(BIN)/ghostlab pcapbench

mutants:
	@echo "== 100,000 captures with changed bytes (make test takes 5,000)"
	@GHOST_MUTANTS=$${GHOST_MUTANTS:-100000} $(GO) test -count 1 -timeout 60m -run '^TestMutants$$' -v ./forensics

screenshots: deps-test build
	@scripts/deps pictures
	@echo "== pictures of the documents, from the demo and a terminal"
	@RECORD=$(CURDIR)/docs/images/terminal.txt $(GO) test -count 1 -run TestTerminalPicture ./cmd/ghostbot
	@node $(SIM)/screenshots.mjs $(BIN)/ghostlab docs/images
	@RECORD=$(CURDIR)/docs/images $(GO) test -count 1 -run '^TestPlotsOfALocalCapture$$' ./internal/e2e

record:
	@[ -n "$$GEMINI_API_KEY" ] || { echo "set GEMINI_API_KEY: a real model is asked (some cents)"; exit 1; }
	@GHOST_RECORD=$${GHOST_RECORD:-case} $(GO) test ./agent/gemini -run '^TestRecord$$' -count 1 -v

fmt:
	@gofmt -w $$(git ls-files -co --exclude-standard '*.go')

clean:
	rm -rf $(BIN)

policy-page:
	@$(GO) test ./safeexec/policy -count 1 -run ReferencePage -update
