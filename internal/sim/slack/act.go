package slacksim

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ghostbot/internal/sim/slack/blockkit"
	"ghostbot/internal/sim/slack/webapi"
	"ghostbot/internal/sim/slack/workspace"
)

// Outcome is what a person sees after an action.
type Outcome struct {
	OK bool `json:"ok"`
	// Error is operation_timeout, dispatch_failed, or why the action was impossible; Detail says
	// more, for people.
	Error  string `json:"error,omitempty"`
	Detail string `json:"detail,omitempty"`
	TS     string `json:"ts,omitempty"` // of the message posted by Message
	// Ephemerals are the texts shown only to this person; Messages are the public ones of the app
	// that appeared or changed in the channel meanwhile.
	Ephemerals []Shown `json:"ephemerals"`
	Messages   []Shown `json:"messages"`
	// ViewID is a modal that was opened, pushed or updated; Closed lists modals that went away.
	ViewID    string            `json:"view_id,omitempty"`
	ViewTitle string            `json:"view_title,omitempty"`
	Closed    []string          `json:"closed,omitempty"`
	Errors    map[string]string `json:"errors,omitempty"` // of a submission, by block id
	AckMS     float64           `json:"ack_ms"`
}

// Shown is one message in an Outcome.
type Shown struct {
	Kind     string          `json:"kind"` // ephemeral, message, message_changed, message_deleted
	Channel  string          `json:"channel"`
	TS       string          `json:"ts"`
	ThreadTS string          `json:"thread_ts"`
	Text     string          `json:"text"`
	Blocks   json.RawMessage `json:"blocks"`
}

// Refusal is an action that cannot be taken at all: wrong reference, wrong person.
type Refusal struct {
	Code   string // channel_not_found, user_not_found, user_not_active, ...
	Detail string
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Detail }

func refusal(code, format string, args ...any) error {
	return &Refusal{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// person resolves somebody who can act: people only, and active ones.
func (s *Server) person(ref string) (workspace.User, error) {
	u, ok := s.ws.User(ref)
	switch {
	case !ok:
		return u, refusal("user_not_found", "no user %q; GET /lab/users lists them", ref)
	case u.Deleted || u.Bot:
		return u, refusal("user_not_active", "%s is a deactivated or app account and cannot act", u.Name)
	}
	return u, nil
}

func (s *Server) place(ref string) (workspace.Channel, error) {
	ch, ok := s.ws.Channel(ref)
	switch {
	case !ok:
		return ch, refusal("channel_not_found", "no channel %q; GET /lab/channels lists them", ref)
	case ch.Archived:
		return ch, refusal("is_archived", "#%s is archived", ch.Name)
	}
	return ch, nil
}

func (s *Server) both(channel, user string) (workspace.Channel, workspace.User, error) {
	ch, err := s.place(channel)
	if err != nil {
		return ch, workspace.User{}, err
	}
	u, err := s.person(user)
	if err == nil && !ch.Member(u.ID) {
		err = refusal("user_not_in_channel", "%s is not in #%s", u.Name, ch.Name)
	}
	return ch, u, err
}

// observer collects what happens for one person while an action is under way.
type observer struct {
	s       *Server
	out     Outcome
	user    string
	channel string
	cause   string // the trigger of the action
	events  <-chan workspace.Event
	cancel  func()
	wait    time.Duration
	start   time.Time
	seen    bool
	private bool // only what this person is shown shortens the wait
}

func (s *Server) observe(user, channel string, wait time.Duration) *observer {
	if wait == 0 {
		wait = s.opt.Settle
	}
	o := &observer{s: s, user: user, channel: channel, wait: wait, start: time.Now()}
	o.out = Outcome{OK: true, Ephemerals: []Shown{}, Messages: []Shown{}}
	o.events, o.cancel = s.ws.Subscribe(1 << 14) // nobody reads until the acknowledgement: hundreds of cases write much in that time
	return o
}

// acked notes the time of the acknowledgement, or the failure.
func (o *observer) acked(err error) {
	o.out.AckMS = float64(time.Since(o.start).Microseconds()) / 1000
	if err != nil {
		o.out.OK, o.out.Error = false, err.Error()
	}
}

// grace is how long the observer goes on after the first thing it saw: things tend to come in pairs.
const grace = 40 * time.Millisecond

// settle waits for consequences and ends the observation.
func (o *observer) settle() Outcome {
	defer o.cancel()
	if !o.out.OK {
		o.wait = 0
	}
	t := time.NewTimer(o.wait)
	defer t.Stop()
	for {
		select { // what has happened comes before the end of the wait
		case e, open := <-o.events:
			if !open {
				return o.blind()
			}
			o.take(e, t)
			continue
		default:
		}
		select {
		case e, open := <-o.events:
			if !open {
				return o.blind()
			}
			o.take(e, t)
		case <-t.C:
			return o.out
		case <-o.s.ctx.Done():
			return o.out
		}
	}
}

// blind is the outcome when more happened than could be observed: what this person was told is not known, and
// that it was nothing must not be believed.
func (o *observer) blind() Outcome {
	o.out.OK, o.out.Error = false, "unobserved"
	return o.out
}

// take notes an event; the first that matters shortens the wait.
func (o *observer) take(e workspace.Event, t *time.Timer) {
	if o.note(e) && !o.seen && (isPrivate(e) || !o.private) {
		o.seen = true
		t.Reset(min(o.wait, grace))
	}
}

// isPrivate reports whether one person is shown e.
func isPrivate(e workspace.Event) bool {
	return e.Kind != "message" && e.Kind != "message_changed" && e.Kind != "message_deleted" || e.Message != nil && e.Message.Ephemeral
}

// note takes an event into the outcome if it concerns this person and place. A window, or an answer by response
// URL, that comes of another action of the same person is none of this one's, however late it comes.
func (o *observer) note(e workspace.Event) bool {
	if isPrivate(e) && e.Cause != "" && o.cause != "" && e.Cause != o.cause {
		return false
	}
	switch e.Kind {
	case "view", "view_changed":
		if e.User == o.user {
			o.out.ViewID, o.out.ViewTitle = e.View.ID, e.View.Title
			return true
		}
	case "view_closed":
		if e.User == o.user {
			o.out.Closed = append(o.out.Closed, e.View.ID)
			return true
		}
	case "ephemeral", "message", "message_changed", "message_deleted":
		return o.noteMessage(e)
	}
	return false
}

func (o *observer) noteMessage(e workspace.Event) bool {
	m := e.Message
	shown := Shown{Kind: e.Kind, Channel: e.Channel, TS: m.TS, ThreadTS: m.ThreadTS, Text: m.Text, Blocks: m.Blocks}
	switch {
	case m.Ephemeral:
		if m.To != o.user {
			return false
		}
		o.out.Ephemerals = append(o.out.Ephemerals, shown)
	case e.Channel == o.channel && m.User == o.s.ws.Team().BotUID:
		o.out.Messages = append(o.out.Messages, shown)
	default:
		return false
	}
	return true
}

// Command runs a slash command. A text that starts with "/" names its command, otherwise it is the
// text of the app's own. What the person typed goes to the app as it is.
func (s *Server) Command(channel, user, text string) (Outcome, error) {
	return s.command(channel, user, text, 0)
}

func (s *Server) command(channel, user, text string, wait time.Duration) (Outcome, error) {
	ch, u, err := s.both(channel, user)
	if err != nil {
		return Outcome{}, err
	}
	command, rest := s.opt.Command, strings.TrimSpace(text)
	if strings.HasPrefix(rest, "/") {
		command, rest, _ = strings.Cut(rest, " ")
		rest = strings.TrimSpace(rest)
	}
	trigger := s.ws.NewTrigger(u.ID, "", s.opt.TriggerTTL)
	hook := s.ws.NewHook(workspace.Hook{Channel: ch.ID, User: u.ID, Command: true, Cause: trigger}, 5, s.opt.ResponseTTL)
	o := s.observe(u.ID, ch.ID, wait)
	o.cause = trigger
	ack, err := s.hub.Send("slash_commands", s.commandPayload(ch, u, command, rest, trigger, hook))
	o.acked(err)
	if err != nil {
		o.out.Detail = fmt.Sprintf("%s failed with the error %q", command, err)
		s.notice(ch.ID, u.ID, o.out.Detail)
	} else if ack != nil {
		if err := s.respond(workspace.Hook{Channel: ch.ID, User: u.ID, Command: true}, ack); err != nil {
			o.out.Error, o.out.Detail = "invalid_command_response", err.Error()
			s.notice(ch.ID, u.ID, fmt.Sprintf("%s failed with the error %q", command, "invalid_command_response"))
		}
	}
	return o.settle(), nil
}

// notice is an ephemeral message of Slack itself.
func (s *Server) notice(channel, user, text string) {
	_, _ = s.ws.Post(workspace.Message{ // the channel was resolved by the caller
		Channel: channel, User: "USLACKBOT", Text: blockkit.Escape(text), Ephemeral: true, To: user, Subtype: "notice"}, "")
}

// Message posts as a person; thread is the parent's ts or empty. "<@U...>" and "@name" mention;
// everything else is escaped as Slack's composer does.
func (s *Server) Message(channel, user, text, thread string) (Outcome, error) {
	return s.message(labCall{Click: Click{Channel: channel, User: user}, Text: text, ThreadTS: thread})
}

func (s *Server) message(c labCall) (Outcome, error) {
	ch, u, err := s.both(c.Channel, c.User)
	if err != nil {
		return Outcome{}, err
	}
	if strings.TrimSpace(c.Text) == "" && c.File == "" {
		return Outcome{}, refusal("no_text", "a message needs text")
	}
	thread := c.ThreadTS
	if thread != "" {
		m, ok := s.ws.Message(ch.ID, thread)
		if !ok || m.Ephemeral {
			return Outcome{}, refusal("thread_not_found", "no message %s in #%s", thread, ch.Name)
		}
		if m.ThreadTS != "" {
			thread = m.ThreadTS
		}
	}
	post := workspace.Message{Channel: ch.ID, User: u.ID, ThreadTS: thread, Text: s.compose(c.Text), Broadcast: c.Also}
	if c.File != "" {
		id, err := s.attach(u.ID, ch.ID, c.File)
		if err != nil {
			return Outcome{}, refusal("file_not_attached", "%v", err)
		}
		post.FileIDs, post.Subtype = []string{id}, "file_share"
	}
	o := s.observe(u.ID, ch.ID, c.wait())
	m, err := s.ws.Post(post, "")
	if err != nil {
		o.cancel()
		return Outcome{}, refusal("message_not_posted", "%v", err)
	}
	o.out.TS = m.TS
	if c.wait() == 0 {
		o.wait = 1 // nobody acknowledges a message
	}
	return o.settle(), nil
}

// attach makes a small file that a person adds to a message.
func (s *Server) attach(user, channel, name string) (id string, err error) {
	content := []byte("attached by a person\n")
	f := s.ws.Reserve(user, name, "", int64(len(content)))
	if err := s.ws.Upload(f.Secret, content); err != nil {
		return "", err
	}
	_, err = s.ws.Finish(f.ID, "", []string{channel})
	return f.ID, err
}

// Click operates an element of a message or of an open modal.
type Click struct {
	TS       string          `json:"ts"`
	Channel  string          `json:"channel"`
	ViewID   string          `json:"view_id"`
	User     string          `json:"user"`
	ActionID string          `json:"action_id"`
	BlockID  string          `json:"block_id"`
	Label    string          `json:"label"`  // what stands on it: a button, or an option of a menu
	Option   any             `json:"option"` // value or text of the chosen option; text for inputs
	Values   json.RawMessage `json:"values"` // what the message's inputs hold, as in Submit
	WaitMS   int             `json:"wait_ms"`
	// Private is of an element that opens a window or answers whoever used it: what everybody sees ends
	// the wait for that no sooner.
	Private bool `json:"private"`
}

// Click acts; the zero fields of c that do not matter stay empty.
func (s *Server) Click(c Click) (Outcome, error) {
	u, err := s.person(c.User)
	if err != nil {
		return Outcome{}, err
	}
	if c.ViewID != "" {
		return s.clickView(c, u)
	}
	ch, err := s.place(c.Channel)
	if err != nil {
		return Outcome{}, err
	}
	m, ok := s.ws.Message(ch.ID, c.TS)
	if !ok || (m.Ephemeral && m.To != u.ID) {
		return Outcome{}, refusal("message_not_found", "no message %s in #%s that %s can see", c.TS, ch.Name, u.Name)
	}
	p, chosen, state, err := pressed(m.BlockList(), c)
	if err != nil {
		return Outcome{}, err
	}
	trigger := s.ws.NewTrigger(u.ID, "", s.opt.TriggerTTL)
	hook := s.ws.NewHook(workspace.Hook{
		Channel: ch.ID, User: u.ID, TS: m.TS, ThreadTS: m.ThreadTS, Cause: trigger}, 5, s.opt.ResponseTTL)
	payload := s.interaction("block_actions", u, trigger)
	s.messageAction(m, ch, payload, hook)
	payload["state"] = map[string]any{"values": state}
	payload["actions"] = []any{actionWire(p.Placed, chosen)}
	return s.interact(u.ID, ch.ID, trigger, c, p, payload), nil
}

func (s *Server) interact(user, channel, trigger string, c Click, p found, payload map[string]any) Outcome {
	o := s.observe(user, channel, time.Duration(c.WaitMS)*time.Millisecond)
	o.cause, o.private = trigger, c.Private
	_, err := s.hub.Send("interactive", payload)
	o.acked(err)
	if err != nil {
		o.out.Detail = "the control shows a warning sign: the app did not answer"
		s.ws.Announce(workspace.Event{
			Kind: "click_failed", Channel: channel, TS: c.TS, User: user, Text: p.BlockID + " " + p.ActionID()})
	}
	return o.settle()
}

func (s *Server) clickView(c Click, u workspace.User) (Outcome, error) {
	v, err := s.ownView(c.ViewID, u)
	if err != nil {
		return Outcome{}, err
	}
	p, chosen, state, err := pressed(v.BlockList(), c)
	if err != nil {
		return Outcome{}, err
	}
	trigger := s.ws.NewTrigger(u.ID, v.ID, s.opt.TriggerTTL)
	payload := s.interaction("block_actions", u, trigger)
	payload["container"] = map[string]any{"type": "view", "view_id": v.ID}
	payload["view"] = s.viewPayload(v, state)
	payload["actions"] = []any{actionWire(p.Placed, chosen)}
	return s.interact(u.ID, "", trigger, c, p, payload), nil
}

func (s *Server) ownView(id string, u workspace.User) (workspace.View, error) {
	v, ok := s.ws.FindView(id)
	switch {
	case !ok:
		return v, refusal("view_not_found", "no open view %q; GET /lab/views lists them", id)
	case v.User != u.ID:
		return v, refusal("not_your_view", "view %s is open for somebody else", id)
	}
	return v, nil
}

// Submit fills and submits a modal. values may be keyed by block id, by action id, by the label of
// the field, or nested as Slack's state is; what it does not name keeps its initial value. A form
// that Slack's client would not send comes back with Errors and without asking the app.
func (s *Server) Submit(viewID, user string, values any) (Outcome, error) {
	raw, err := json.Marshal(values)
	if err != nil {
		return Outcome{}, refusal("invalid_values", "%v", err)
	}
	return s.submit(viewID, user, raw, 0)
}

func (s *Server) submit(viewID, user string, values json.RawMessage, wait time.Duration) (Outcome, error) {
	u, err := s.person(user)
	if err != nil {
		return Outcome{}, err
	}
	v, err := s.ownView(viewID, u)
	if err != nil {
		return Outcome{}, err
	}
	state, err := fillState(v.BlockList(), values)
	if err != nil {
		return Outcome{}, err
	}
	if bad := blockkit.Missing(v.BlockList(), state); len(bad) > 0 {
		return Outcome{Error: "validation", Errors: bad, Ephemerals: []Shown{}, Messages: []Shown{}}, nil
	}
	payload := s.interaction("view_submission", u, s.ws.NewTrigger(u.ID, v.ID, s.opt.TriggerTTL))
	payload["view"] = s.viewPayload(v, state)
	payload["response_urls"] = []any{}
	o := s.observe(u.ID, "", wait)
	ack, err := s.hub.Send("interactive", payload)
	o.acked(err)
	if err == nil {
		err = s.applySubmission(v, ack, &o.out)
	}
	if err != nil {
		o.out.OK, o.out.Detail = false, "We had some trouble connecting. Try again?"
		if o.out.Error == "" {
			o.out.Error, o.out.Detail = "invalid_response", o.out.Detail+" ("+err.Error()+")"
		}
	}
	return o.settle(), nil
}

// applySubmission does what the acknowledgement of a submission asks for.
func (s *Server) applySubmission(v workspace.View, ack json.RawMessage, out *Outcome) error {
	var a struct {
		Action string            `json:"response_action"`
		Errors map[string]string `json:"errors"`
		View   json.RawMessage   `json:"view"`
	}
	if ack != nil {
		if err := json.Unmarshal(ack, &a); err != nil {
			return errors.New("the acknowledgement is not understood")
		}
	}
	switch a.Action {
	case "":
		s.ws.CloseView(v.ID, false, "")
	case "clear":
		s.ws.CloseView(v.ID, true, "")
	case "errors":
		return formErrors(v, a.Errors, out)
	case "update", "push":
		def, err := webapi.CheckView(string(a.View), blockkit.Modal)
		if err != nil {
			return fmt.Errorf("the new view is not valid: %w", err)
		}
		if a.Action == "update" {
			_, err = s.ws.UpdateView(v.ID, "", def, "")
		} else {
			_, err = s.ws.PushView(v.User, v.ID, def, "")
		}
		return err
	default:
		return fmt.Errorf("response_action %q is unknown", a.Action)
	}
	return nil
}

// formErrors: errors must be keyed by the block ids of inputs, otherwise Slack shows a general
// failure.
func formErrors(v workspace.View, bad map[string]string, out *Outcome) error {
	inputs := map[string]bool{}
	for _, p := range blockkit.Interactive(v.BlockList()) {
		inputs[p.BlockID] = inputs[p.BlockID] || p.BlockType == "input"
	}
	for id := range bad {
		if !inputs[id] {
			return fmt.Errorf("error key %q is not the block_id of an input", id)
		}
	}
	if len(bad) == 0 {
		return errors.New("errors are empty")
	}
	out.OK, out.Error, out.Errors = false, "validation", bad
	return nil
}

// CloseView dismisses a modal; the app hears of it if it asked to.
func (s *Server) CloseView(viewID, user string) (Outcome, error) {
	u, err := s.person(user)
	if err != nil {
		return Outcome{}, err
	}
	v, err := s.ownView(viewID, u)
	if err != nil {
		return Outcome{}, err
	}
	o := s.observe(u.ID, "", 1)
	for _, gone := range s.ws.CloseView(v.ID, false, "") {
		if notify, _ := gone.Def()["notify_on_close"].(bool); !notify {
			continue
		}
		payload := s.interaction("view_closed", u, "")
		delete(payload, "trigger_id")
		payload["view"], payload["is_cleared"] = s.viewPayload(gone, blockkit.InitialState(gone.BlockList())), false
		_, err := s.hub.Send("interactive", payload)
		o.acked(err)
	}
	return o.settle(), nil
}
