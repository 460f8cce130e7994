package gemini

import (
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/genai"

	"ghostbot/agent"
	"ghostbot/agent/hosts"
)

// The arguments of the tools stand here and in the moves of package agent; a
// test holds the two against each other.

func object(required []string, props map[string]*genai.Schema) *genai.Schema {
	return &genai.Schema{Type: genai.TypeObject, Properties: props, Required: required}
}

func str(about string, enum ...string) *genai.Schema {
	return &genai.Schema{Type: genai.TypeString, Description: about, Enum: enum}
}

func list(about string, of *genai.Schema) *genai.Schema {
	return &genai.Schema{Type: genai.TypeArray, Description: about, Items: of}
}

func ids(about string) *genai.Schema { return list(about, str("an id")) }

const aboutHypothesis = "Id of the hypothesis that this serves; denials are charged to it."

// declarations are the tools of the design, and manage_hypotheses.
func declarations() []*genai.FunctionDeclaration {
	return []*genai.FunctionDeclaration{
		{Name: agent.ToolShell, Parameters: object([]string{"command", "reasoning"}, map[string]*genai.Schema{
			"command":       str("The complete command: one program with its arguments. No shell: no pipes, chaining, redirection, sudo."),
			"reasoning":     str("One sentence: what it shows and which hypothesis it decides. People who approve read it; it is audited."),
			"hypothesis_id": str(aboutHypothesis),
			"target":        str("Host, address or resource that it touches."),
			"effect":        str("For a command that changes something: what is expected to happen."),
			"means":         str("For a command that a person has to approve: what each possible result would mean for the hypothesis."),
		}), Description: "Run one diagnostic command, or one read of Azure's configuration, through the gate, which classifies it: SAFE runs, RISKY waits for a person, FORBIDDEN never runs and is not to be tried again. For ping, dig, traceroute, mtr, ss, ip, nc, openssl s_client, curl that reads, az ... list/show/get. Reading files: only report paths that a finished task returned."},
		{Name: agent.ToolCapture, Parameters: object([]string{"target", "resource_group", "storage_account"}, map[string]*genai.Schema{
			"target":           str("VM name, full resource id, or \"source_vm to dest_vm\" for both ends. Short names are looked up in resource_group."),
			"resource_group":   str("Resource group of the VMs."),
			"storage_account":  str("Storage account for the capture's blob."),
			"duration_seconds": {Type: genai.TypeInteger, Description: "Default 60, at most 300."},
			"bytes_per_packet": {Type: genai.TypeInteger, Description: "Default 128, which is headers only. More captures payload, and the person who approves is told so."},
			"total_bytes":      {Type: genai.TypeInteger, Description: "Of the whole capture. Default 104857600, at most 1073741824."},
			"filters": list("Packets that match one of these are captured. Left out: all.", object(nil, map[string]*genai.Schema{
				"protocol": str("Transport.", "TCP", "UDP", "Any"), "localIPAddress": str("An address, a range a-b, or several with ;."), "remoteIPAddress": str("As localIPAddress."),
				"localPort": str("A port, a range a-b, or several with ;."), "remotePort": str("As localPort."),
			})),
			"investigation_context": str("One sentence: what behaviour is captured. Audited, and shown to who approves."),
			"storage_auth_mode":     str("login (default, Entra ID) or key.", "login", "key"),
			"hypothesis_id":         str(aboutHypothesis),
		}), Description: "Start a packet capture of Azure Network Watcher on one VM or between two. Returns a task_id at once; poll with check_task. RISKY: a person approves."},
		{Name: agent.ToolCheck, Parameters: object([]string{"task_id"}, map[string]*genai.Schema{
			"task_id": str("As returned by capture_traffic."), "hypothesis_id": str(aboutHypothesis),
		}), Description: "State of a capture: waits up to 45 seconds for it. Call until task_completed, task_failed, task_cancelled or task_timed_out."},
		{Name: agent.ToolCancel, Parameters: object([]string{"task_id"}, map[string]*genai.Schema{
			"task_id": str("The capture to end."), "reason": str("Why, in a few words; audited."), "hypothesis_id": str(aboutHypothesis),
		}), Description: "End a capture early and remove what it made. Each removal asks a person."},
		{Name: agent.ToolCleanup, Parameters: object([]string{"task_id"}, map[string]*genai.Schema{
			"task_id": str("The capture whose resources go."), "hypothesis_id": str(aboutHypothesis),
		}), Description: "Remove what a finished capture left in the cloud. Each removal asks a person. After the report was read."},
		triageDeclaration(), manageDeclaration(), completeDeclaration(),
	}
}

func triageDeclaration() *genai.FunctionDeclaration {
	whole := func(about string) *genai.Schema {
		return &genai.Schema{Type: genai.TypeInteger, Description: about}
	}
	return &genai.FunctionDeclaration{Name: agent.ToolTriage, Parameters: object([]string{"do", "reasoning"}, map[string]*genai.Schema{
		"do":            str("look judges all processes of the bot's machine and returns a session; the others are about one process of that session.", hosts.Verbs()...),
		"port":          whole("Of look: the process that listens on this port comes first."),
		"pids":          list("Of look: these come first.", whole("a process number")),
		"session":       str("The session_id that a look returned."),
		"pid":           whole("Of what is not look or verify: a pid that the look printed."),
		"start_id":      str("Of end, pause, resume, throttle, restart: the start_id that stands beside that pid."),
		"reasoning":     str("One sentence: what it shows or mends, and which hypothesis it decides. People who approve read it; it is audited."),
		"hypothesis_id": str(aboutHypothesis),
	}), Description: "Look at the processes of the machine that this runs on: who holds a port, whose accept queue is full, who leaks descriptors, burns processors or was forgotten. look, explain and verify are SAFE. end, pause, resume, throttle and restart are RISKY: a person approves each, and a process that is not the one of the look is never touched. Use this instead of kill, pkill or killall. Call verify after something was done."}
}

func manageDeclaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: agent.ToolHypotheses, Parameters: object(nil, map[string]*genai.Schema{
		"add": list("New hypotheses; an id that exists becomes active again.", object([]string{"id", "description"}, map[string]*genai.Schema{
			"id": str("Short, such as H1: letters, digits, dot, underscore, dash."), "description": str("One falsifiable sentence."),
		})),
		"update": list("Decisions.", object([]string{"id", "state"}, map[string]*genai.Schema{
			"id": str("An id that was added."), "state": str("ACTIVE takes a decision back.", "ACTIVE", "CONFIRMED", "REFUTED", "CONTRADICTED", "UNVERIFIABLE"),
			"evidence": ids("Audit ids of this case. CONFIRMED and REFUTED need a command that ran; CONTRADICTED needs two."), "why": str("One sentence that the evidence carries."),
		})),
		"remove_ids": ids("Hypotheses that are no longer looked at; the log keeps them."),
	}), Description: "State what you are after and decide it. Two to four hypotheses in a case, at most three active."}
}

func completeDeclaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: agent.ToolComplete, Parameters: object([]string{"confidence", "root_cause_summary"}, map[string]*genai.Schema{
		"confidence":         str("high: a cause is shown, and a command could have refuted it. medium: part is shown. low: access denied, or nothing shown.", "high", "medium", "low"),
		"root_cause_summary": str("One to three sentences."),
		"verdict":            str("What was found.", "root_cause", "no_fault", "unverified"),
		"causes": list("One for each distinct symptom.", object([]string{"statement", "evidence"}, map[string]*genai.Schema{
			"statement": str("One sentence: cause and mechanism."), "evidence": ids("Audit ids of commands that ran and show it."),
		})),
		"confirmed_hypotheses":    ids("Confirmed by evidence."),
		"refuted_hypotheses":      ids("Disproved by evidence."),
		"unverifiable_hypotheses": ids("Could not be tested, denied or out of reach."),
		"contradicted_hypotheses": ids("Results contradict each other; name the audit ids and the source you rely on in the summary."),
		"recommended_actions":     list("Concrete steps for people, in order, each with how to check it.", str("one step")),
		"gaps":                    list("What was wanted and not seen.", str("one gap")),
	}), Description: "End the investigation and have the report written. Refused while a hypothesis is active that is neither decided nor listed."}
}

// moves turns the calls of one answer into moves, in order.
func (b *Brain) moves(calls []*genai.FunctionCall) []agent.Move {
	var out []agent.Move
	for _, c := range calls {
		i := slices.IndexFunc(b.tools, func(d *genai.FunctionDeclaration) bool { return d.Name == c.Name })
		if i < 0 {
			out = append(out, agent.Unknown{Tool: c.Name})
			continue
		}
		out = append(out, move(b.tools[i], c))
	}
	return out
}

// move parses one call. What the declaration requires must be there: package
// agent would take a missing summary for an empty one.
func move(d *genai.FunctionDeclaration, c *genai.FunctionCall) agent.Move {
	for _, name := range d.Parameters.Required {
		if v, ok := c.Args[name]; !ok || v == "" || v == nil {
			return agent.Unknown{Tool: c.Name, Error: fmt.Sprintf("arguments of %s: %s is missing", c.Name, name)}
		}
	}
	for name := range c.Args { // what the loop's own brain may say, and a model may not
		if _, ok := d.Parameters.Properties[name]; !ok {
			return agent.Unknown{Tool: c.Name, Error: fmt.Sprintf("arguments of %s: there is no %q", c.Name, name)}
		}
	}
	raw, err := json.Marshal(c.Args)
	if err != nil || c.Args == nil {
		raw = json.RawMessage("{}")
	}
	m := agent.ParseMove(c.Name, raw)
	if f, ok := m.(agent.Complete); ok && !slices.Contains(d.Parameters.Properties["confidence"].Enum, f.Confidence) {
		return agent.Unknown{Tool: c.Name, Error: fmt.Sprintf("arguments of %s: confidence %q is not high, medium or low", c.Name, f.Confidence)}
	}
	return m
}
