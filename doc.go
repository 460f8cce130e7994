// Package ghostbot is the tour of the program; it holds no code.
//
// ghostbot investigates network incidents where the people already are: in a
// Slack thread. Somebody describes a symptom; a brain proposes moves; every move
// that touches the world passes one gate that classifies it, asks a person when
// it must, runs it without a shell, redacts and shortens what comes back, and
// writes it to an append-only journal. The case ends with a root-cause report in
// which every claim cites journal entries.
//
// # Layers
//
// From the bottom up; a package imports only what stands below it, along the
// arrows that tree_test.go lists.
//
//	audit       hash-chained journals
//	store       durable values, once-keys, leases with fences; store/file keeps them on one machine
//	safeexec    the gate; policy, redact and truncate are its rooms
//	orchestrator  packet captures in the cloud as steps through the gate
//	agent       one case: hypotheses, budgets, the closed set of moves, the loop
//	agent/playbook  a brain that follows rules offline
//	agent/gemini    a brain that asks a model
//	agent/rca   journals in, report out
//	bot         the front desk: cases, leases, proposals, what people see
//	bot/slack   Socket Mode, Block Kit, modals
//	triage      host processes: judged, and ended where somebody says so
//	cmd/ghostbot  flags and environment, and one pass that builds everything
//	cmd/ghostlab  the local Slack workspace and the demo; never shipped
//
// # One investigation, eight hops
//
//  1. bot/slack receives "/ghost investigate ..." and calls bot.Desk.Open, which
//     stores the case and the delivery's once-key in one step; then the envelope is
//     acknowledged.
//  2. The desk acquires the case's lease, opens its journals and starts its
//     goroutine, which calls agent.Investigate.
//  3. The agent gives the brain a view of the case and gets moves.
//  4. A move that runs something goes to safeexec.Shell.Run, directly or through
//     the orchestrator.
//  5. The gate parses and classifies. A RISKY command becomes a proposal; the
//     approver (proposal.Approvals) stores it, the projector shows it as a card, and a
//     click is one compare-and-set on the stored proposal.
//  6. The gate writes the intent in one atomic step with the last check of the
//     approval, runs the command under a supervisor, redacts, shortens, and writes
//     the outcome.
//  7. The agent folds the new entries into the case and goes on with 3.
//  8. The closing move makes agent/rca build the report from the journals; the
//     projector posts it, and the desk releases the lease.
//
// docs/architecture.md and docs/durability.md say why it is like this.
package ghostbot
