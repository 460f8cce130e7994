package orchestrator

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"ghostbot/orchestrator/command"
	"ghostbot/orchestrator/digest"
	"ghostbot/orchestrator/failure"
	"ghostbot/orchestrator/names"
	"ghostbot/orchestrator/seal"
	"ghostbot/safeexec"
)

// Time limits of storage commands: az repeats silently for up to 90 s.
const (
	storageTimeout  = 2 * time.Minute
	transferTimeout = 8 * time.Minute
	analyzeTimeout  = 5 * time.Minute
)

// step does the one thing that is next for t, and reports false when there is
// nothing to do now. Every step ends with a transition, so that a resumed call
// goes on behind it.
func (r *run) step(ctx context.Context, t *Task) (bool, error) {
	switch t.State {
	case Created:
		return true, r.prepare(ctx, t)
	case Approved:
		return true, r.create(ctx, t)
	case Provisioning:
		return true, r.provision(ctx, t)
	case Downloading:
		return true, r.download(ctx, t)
	case Complete:
		if r.settled(t) {
			return true, r.to(ctx, t, Analyzing, nil)
		}
	case Analyzing:
		return true, r.analyze(ctx, t)
	case CleaningUp:
		return true, r.sweepStep(ctx, t)
	case Broken, Stopped, Expired:
		if t.CleanupStatus != nil && *t.CleanupStatus == CleanupPending && t.open() {
			return true, r.startCleanup(ctx, t, nil)
		}
	}
	return false, nil
}

// about is how every command of a task names what it touches.
func about(t *Task, what string) string { return what + " of task " + t.TaskID }

func reasoning(t *Task, step string) string {
	if t.Context == "" {
		return step
	}
	return step + ": " + t.Context
}

// prepare looks for the container and writes the clean-up plan, before anything
// can exist.
func (r *run) prepare(ctx context.Context, t *Task) error {
	if t.StorageContainer != "" {
		a, err := r.act(ctx, t, action{
			argv: r.o.az.Container(t.StorageAccount, t.StorageContainer, t.AuthMode), timeout: storageTimeout,
			why: reasoning(t, "see that the capture can be stored"), target: about(t, "container "+t.StorageAccount+"/"+t.StorageContainer),
			effect: command.KeyEffect(t.AuthMode, t.StorageAccount, ""),
		})
		if err != nil {
			return err
		}
		if !a.ok() || !strings.EqualFold(strings.TrimSpace(a.Output), "true") {
			f := failure.Failure{Code: "container_missing", Advice: "Create the container, or unset GHOST_AZ_CONTAINER to use Azure's own."}
			if !a.ok() {
				f = a.failure()
			}
			return r.to(ctx, t, Broken, func(n *Task) {
				n.take(a)
				n.fail(f, fmt.Sprintf("Storage account '%s' or container '%s' is inaccessible", t.StorageAccount, t.StorageContainer))
			})
		}
		return r.approve(ctx, t, a)
	}
	return r.approve(ctx, t, answer{})
}

func (r *run) approve(ctx context.Context, t *Task, a answer) error {
	return r.to(ctx, t, Approved, func(n *Task) {
		n.take(a)
		n.Timestamps.Approved = r.o.opt.Now().UTC()
		n.CleanupPlan = []CleanupStep{{What: StepCapture, Argv: r.o.az.Delete(t.Location, t.TaskID)}, {What: StepBlob, Argv: []string{}}}
		if r.o.opt.RemoveLocal {
			n.CleanupPlan = append(n.CleanupPlan, CleanupStep{What: StepLocal, Argv: command.Remove(t.PcapPath)})
		}
		pending := CleanupPending
		n.CleanupStatus = &pending
	})
}

// create asks for the capture. A denial leaves nothing to clean up.
func (r *run) create(ctx context.Context, t *Task) error {
	a, err := r.act(ctx, t, action{
		argv: r.o.az.Create(r.capture(t)), timeout: storageTimeout, why: reasoning(t, "capture packets on "+t.Target),
		target: about(t, "VM "+t.Target), effect: r.capture(t).Effect(),
	})
	switch {
	case err != nil:
		return err
	case a.ok(), a.unknown(), a.Status == "completed" && a.failure().Code == "name_taken": // the name is this task's own
		return r.to(ctx, t, Provisioning, func(n *Task) {
			n.take(a)
			n.AzureOperationID = n.TaskID
			if a.ok() {
				n.Timestamps.Provisioned = r.o.opt.Now().UTC()
				return
			}
			n.fail(a.failure(), "")
			n.Notes = append(n.Notes, "what came of the command that creates the capture is not known; Azure was asked whether it exists")
		})
	case a.refused():
		return r.to(ctx, t, Stopped, func(n *Task) {
			n.take(a)
			n.nothing()
			n.fail(a.failure(), "User denied capture creation"+because(a))
		})
	}
	return r.to(ctx, t, Broken, func(n *Task) {
		f := a.failure()
		n.take(a)
		n.fail(f, "")
		if f.Early {
			n.nothing()
		}
	})
}

// nothing drops the plan of a task that made nothing.
func (t *Task) nothing() { t.CleanupPlan, t.CleanupStatus = nil, nil }

func because(a answer) string {
	if a.DecidedBy == "" || a.DenialReason == "" {
		return ""
	}
	return ": " + a.DenialReason
}

func (r *run) capture(t *Task) command.Capture {
	c := command.Capture{
		Name: t.TaskID, VM: t.Target, Group: t.ResourceGroup, Account: t.Parameters["storage_account"],
		Seconds: t.Duration, PacketBytes: t.PacketBytes, TotalBytes: t.TotalBytes, Filters: t.Filters,
	}
	if t.StorageContainer != "" {
		c.StoragePath = "https://" + t.StorageAccount + ".blob.core.windows.net/" + t.StorageContainer + "/" + t.TaskID + ".cap"
	}
	// A bare name means an account in the VM's group.
	if c.Account == r.o.opt.Account && names.Account(c.Account) && r.o.opt.Subscription != "" && r.o.opt.ResourceGroup != "" {
		c.Account = names.AccountID(r.o.opt.Subscription, r.o.opt.ResourceGroup, c.Account)
	}
	return c
}

// show asks Azure what it knows of the capture. gone means that it has none.
func (r *run) show(ctx context.Context, t *Task) (s command.Shown, gone bool, err error) {
	res, err := r.o.opt.Gate.Run(ctx, r.request(t, action{
		argv: r.o.az.Show(t.Location, t.TaskID), why: reasoning(t, "see where the capture is stored"), target: about(t, "capture"),
	}))
	if err != nil {
		return s, false, err
	}
	a := answer{Result: res}
	if !a.ok() {
		return s, a.failure().Gone, nil
	}
	s, _ = command.ReadShown(a.Output) // an answer that is none tells nothing
	return s, false, nil
}

// learn notes where the capture is stored, and gives the blob step its command.
func (r *run) learn(n *Task, path string) error {
	if path == "" || n.BlobName != "" {
		return nil
	}
	b, err := names.ParseBlob(path, n.StorageAccount)
	if err != nil {
		return err
	}
	n.StorageContainer, n.BlobName = b.Container, b.Name
	for i, s := range n.CleanupPlan {
		if s.What == StepBlob {
			n.CleanupPlan[i].Argv = r.o.az.DeleteBlob(b, n.AuthMode)
		}
	}
	return nil
}

// provision makes sure that there is a capture to wait for. When Azure does not
// answer well, waiting goes on: polling will show.
func (r *run) provision(ctx context.Context, t *Task) error {
	s, gone, err := r.show(ctx, t)
	if err != nil {
		return err
	}
	unsure := t.Timestamps.Provisioned.IsZero()
	switch {
	case s.Provisioning == "Failed" || s.Provisioning == "Canceled":
		return r.to(ctx, t, Broken, func(n *Task) {
			_ = r.learn(n, s.Path)
			n.fail(failure.Failure{Code: "provisioning_failed", Advice: "Look at the capture in the portal for the reason: often the VM does not run or lacks the Network Watcher agent."},
				"Azure could not set the capture up: "+s.Provisioning)
		})
	case unsure && gone:
		return r.to(ctx, t, Broken, func(n *Task) { n.nothing() })
	case unsure && s.Provisioning == "":
		return r.to(ctx, t, Broken, nil)
	}
	return r.to(ctx, t, Waiting, func(n *Task) {
		if n.Timestamps.Provisioned.IsZero() {
			n.Timestamps.Provisioned = r.o.opt.Now().UTC()
		}
		n.Code, n.ErrorDetail, n.Advice = "", "", ""
		if r.learn(n, s.Path) != nil {
			n.Notes = append(n.Notes, names.ErrStoragePath.Error())
		}
	})
}

// download fetches the blob, twice at most; a second try is a command of its own,
// with an approval of its own.
func (r *run) download(ctx context.Context, t *Task) error {
	if t.BlobName == "" {
		return r.locate(ctx, t)
	}
	blob := names.Blob{Account: t.StorageAccount, Container: t.StorageContainer, Name: t.BlobName}
	file, effect, ok := r.o.dir().Landing(t.PcapPath)
	if !ok {
		return r.to(ctx, t, Broken, func(n *Task) { n.fail(failure.NoKey()) })
	}
	a, err := r.act(ctx, t, action{
		argv: r.o.az.Download(blob, file, t.AuthMode), timeout: transferTimeout, why: reasoning(t, "fetch the capture for analysis"),
		target: about(t, "blob "+blob.Account+"/"+blob.Container+"/"+blob.Name),
		effect: command.KeyEffect(t.AuthMode, t.StorageAccount, effect),
	})
	switch {
	case err != nil:
		return err
	case a.ok():
		next := Analyzing
		if t.PairedTaskID != "" {
			next = Complete
		}
		return r.to(ctx, t, next, func(n *Task) { n.take(a); n.keep(a); n.PcapPath = r.o.dir().Kept(n.PcapPath) })
	case a.refused():
		return r.to(ctx, t, Stopped, func(n *Task) { n.take(a); n.fail(a.failure(), "User denied blob download"+because(a)) })
	case t.Attempts == 0 && !a.failure().Lasting:
		if err := r.to(ctx, t, Downloading, func(n *Task) { n.take(a); n.Attempts++ }); err != nil {
			return err
		}
		return rest(ctx, r.o.opt.FirstPoll)
	}
	return r.to(ctx, t, Broken, func(n *Task) { n.take(a); n.fail(a.failure(), failure.OfDownload(t.Attempts > 0)) })
}

// keep notes the files that a command left.
func (t *Task) keep(a answer) { t.Artefacts = append(t.Artefacts, a.Artefacts...) }

// locate asks once more where the capture is.
func (r *run) locate(ctx context.Context, t *Task) error {
	s, _, err := r.show(ctx, t)
	if err != nil {
		return err
	}
	why := "Azure did not say where it stored the capture"
	probe := t.clone()
	if err := r.learn(probe, s.Path); err != nil {
		why = err.Error()
	}
	if probe.BlobName == "" {
		return r.to(ctx, t, Broken, func(n *Task) {
			n.fail(failure.Failure{Code: "no_storage_path", Advice: "Look for the capture in the storage account; nothing was downloaded."}, why)
		})
	}
	return r.to(ctx, t, Downloading, func(n *Task) { _ = r.learn(n, s.Path) })
}

// analyze runs the product's own analysis, of both ends when both are here.
func (r *run) analyze(ctx context.Context, t *Task) error {
	argv, mode := command.Analyze(r.o.opt.Self, t.PcapPath), ""
	semantic, report := r.o.dir().Kept(seal.Stem(t.PcapPath)+"_semantic.json"), r.o.dir().Kept(seal.Stem(t.PcapPath)+"_forensic_report.md")
	p := r.task(t.PairedTaskID)
	if t.PairedTaskID != "" {
		mode = "single_end_fallback"
	}
	if p != nil && p.here() {
		source, destination := t, p
		if t.Destination {
			source, destination = p, t
		}
		argv, mode = command.Compare(r.o.opt.Self, source.PcapPath, destination.PcapPath), "comparison"
		semantic, report = "", r.o.dir().Kept(seal.Stem(source.PcapPath)+"_vs_"+filepath.Base(seal.Stem(destination.PcapPath))+"_comparison.md")
	}
	a, err := r.act(ctx, t, action{argv: argv, timeout: analyzeTimeout, why: reasoning(t, "find out what the capture shows"), target: about(t, "capture file")})
	if err != nil {
		return err
	}
	if !a.ok() {
		return r.to(ctx, t, Broken, func(n *Task) {
			n.take(a)
			n.fail(a.failure().OfAnalysis(a.Status == "completed"), "PCAP Engine analysis failed")
		})
	}
	done := func(n *Task) {
		n.Mode, n.Summary = mode, digest.Summary(a.Output)
		n.SemanticPath, n.ReportPath = semantic, report
		n.Timestamps.Completed = r.o.opt.Now().UTC()
	}
	if mode == "comparison" && p.State == Complete { // the result belongs to both
		if err := r.to(ctx, p, Complete, done); err != nil {
			return err
		}
	}
	return r.to(ctx, t, Complete, func(n *Task) { n.take(a); n.keep(a); done(n) })
}

// here reports that the capture of this end was downloaded.
func (t *Task) here() bool {
	switch t.end() {
	case Complete, Analyzing:
		return true
	}
	return false
}

// settled reports that one end of a pair, whose file is here, has its own result
// to make: the other end has its file too, or will never have one.
func (r *run) settled(t *Task) bool {
	if t.PairedTaskID == "" || !t.Timestamps.Completed.IsZero() {
		return false
	}
	p := r.task(t.PairedTaskID) // whoever analyses does it for both
	return p == nil || p.State != Analyzing && (p.here() || p.end().ended())
}

var _ Gate = (*safeexec.Shell)(nil)
