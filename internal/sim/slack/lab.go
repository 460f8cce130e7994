package slacksim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // the formats whose size is known before they load
	_ "image/jpeg"
	_ "image/png"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ghostbot/internal/sim/slack/page"
	"ghostbot/internal/sim/slack/webapi"
	"ghostbot/internal/sim/slack/workspace"
)

// labRoutes are the page and the endpoints for scripts. Answers are JSON; what cannot be done at all
// is a 4xx with {"ok":false,"error":CODE,"detail":TEXT}, what a person would see fail is a 200 with
// ok:false.
func (s *Server) labRoutes() {
	post := func(path string, f func(labCall) (any, error)) {
		s.mux.HandleFunc("POST /lab/"+path, func(w http.ResponseWriter, r *http.Request) { labPost(w, r, f) })
	}
	get := func(path string, f func(*http.Request) (any, error)) {
		s.mux.HandleFunc("GET /lab/"+path, func(w http.ResponseWriter, r *http.Request) {
			v, err := f(r)
			labAnswer(w, v, err)
		})
	}
	post("command", func(c labCall) (any, error) { return s.command(c.Channel, c.User, c.Text, c.wait()) })
	post("message", func(c labCall) (any, error) { return s.message(c) })
	post("click", func(c labCall) (any, error) { return s.Click(c.click()) })
	post("submit", func(c labCall) (any, error) { return s.submit(c.ViewID, c.User, c.Values, c.wait()) })
	post("close", func(c labCall) (any, error) { return s.CloseView(c.ViewID, c.User) })
	post("shortcut", func(c labCall) (any, error) { return s.shortcut(c.Channel, c.User, c.TS, c.Callback, c.wait()) })
	post("home", func(c labCall) (any, error) { return okay, s.OpenHome(c.User) })
	post("react", func(c labCall) (any, error) { return okay, s.react(c) })
	post("limits", func(c labCall) (any, error) {
		s.EnforceLimits(c.Enforce)
		return s.limits(), nil
	})
	s.mux.HandleFunc("POST /lab/fault", s.labFault)
	get("channels", func(r *http.Request) (any, error) { return s.labChannels(r.URL.Query().Has("all")), nil })
	get("users", func(r *http.Request) (any, error) { return s.labUsers(r.URL.Query().Has("all")), nil })
	get("channels/{id}/messages", s.labMessages)
	get("views", func(*http.Request) (any, error) { return s.Views(), nil })
	get("pages", func(*http.Request) (any, error) { return s.Pages(), nil })
	get("limits", func(*http.Request) (any, error) { return s.limits(), nil })
	get("faults", func(*http.Request) (any, error) {
		return map[string]any{"sockets": s.hub.Faults(), "calls": s.api.Faults.List()}, nil
	})
	get("state", s.labState)
	s.mux.HandleFunc("GET /lab/requests", s.labRequests)
	s.mux.HandleFunc("GET /lab/files/{id}", s.labFile)
	s.mux.HandleFunc("GET /lab/events", s.labEvents)
	s.mux.HandleFunc("GET /archives/{channel}/{message}", s.permalink)
	s.mux.Handle("GET /", page.Handler())
	s.mux.HandleFunc("/", http.NotFound)
}

var okay = map[string]any{"ok": true}

// labCall is the body of every POST: each endpoint reads its part.
type labCall struct {
	Click
	Text     string `json:"text"`
	ThreadTS string `json:"thread_ts"`
	Also     bool   `json:"reply_broadcast"` // a reply that also shows in the channel
	File     string `json:"file"`            // name of a file that is attached to a message
	Name     string `json:"name"`
	Callback string `json:"callback_id"` // of a message shortcut
	Remove   bool   `json:"remove"`
	Enforce  bool   `json:"enforce"`
}

func (c labCall) wait() time.Duration { return time.Duration(c.WaitMS) * time.Millisecond }

func (c labCall) click() Click { return c.Click }

func labPost(w http.ResponseWriter, r *http.Request, f func(labCall) (any, error)) {
	var c labCall
	if err := readJSON(w, r, &c); err != nil {
		labAnswer(w, nil, err)
		return
	}
	v, err := f(c)
	labAnswer(w, v, err)
}

func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
	if err != nil {
		return refusal("body_too_large", "%v", err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return refusal("invalid_json", "want a JSON object: %v", err)
	}
	return nil
}

func labAnswer(w http.ResponseWriter, v any, err error) {
	if err == nil {
		webapi.WriteJSON(w, http.StatusOK, v)
		return
	}
	var r *Refusal
	if !errors.As(err, &r) {
		r = &Refusal{Code: "invalid", Detail: err.Error()}
	}
	status := http.StatusBadRequest
	if strings.HasSuffix(r.Code, "_not_found") {
		status = http.StatusNotFound
	} else if r.Code == "not_your_view" || r.Code == "user_not_in_channel" || r.Code == "user_not_active" {
		status = http.StatusForbidden
	}
	webapi.WriteJSON(w, status, map[string]any{"ok": false, "error": r.Code, "detail": r.Detail})
}

func (s *Server) labFault(w http.ResponseWriter, r *http.Request) {
	var f Fault
	err := readJSON(w, r, &f)
	if err == nil {
		err = s.Inject(f)
	}
	labAnswer(w, okay, err)
}

func (s *Server) react(c labCall) error {
	u, err := s.person(c.User)
	if err != nil {
		return err
	}
	ch, err := s.place(c.Channel)
	if err != nil {
		return err
	}
	change := s.ws.React
	if c.Remove {
		change = s.ws.Unreact
	}
	if _, err := change(ch.ID, c.TS, strings.Trim(c.Name, ":"), u.ID); err != nil {
		return refusal("message_not_found", "no message %s in #%s", c.TS, ch.Name)
	}
	return nil
}

// labChannels lists the channels in which something can be done: the bot is in them and they are open.
func (s *Server) labChannels(all bool) []workspace.Channel {
	return slices.DeleteFunc(s.ws.Channels(), func(c workspace.Channel) bool {
		return !all && (c.Archived || !c.Member(s.ws.Team().BotUID))
	})
}

// labUsers lists the people who can act: no apps, no deactivated accounts.
func (s *Server) labUsers(all bool) []workspace.User {
	return slices.DeleteFunc(s.ws.Users(), func(u workspace.User) bool { return !all && (u.Bot || u.Deleted) })
}

// LabMessage is a message as scripts and the page see it.
type LabMessage struct {
	workspace.Message
	Name  string    `json:"name"` // of the author
	Files []LabFile `json:"files"`
}

// LabFile is a file in a LabMessage; URL is where its content is.
type LabFile struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Title string `json:"title"`
	Mime  string `json:"mimetype"`
	Kind  string `json:"filetype"`
	Alt   string `json:"alt_text,omitempty"`
	Size  int64  `json:"size"`
	URL   string `json:"url"`
	// Width and Height are of an image, so that the page keeps room for it.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
}

func (s *Server) labMessage(m workspace.Message) LabMessage {
	out := LabMessage{Message: m, Files: []LabFile{}}
	if u, ok := s.ws.User(m.User); ok {
		out.Name = u.Name
	}
	for _, id := range m.FileIDs {
		if f, ok := s.ws.File(id); ok {
			file := LabFile{ID: f.ID, Name: f.Name, Title: f.Title, Mime: f.Mime, Kind: f.Kind, Alt: f.Alt, Size: f.Length, URL: "/lab/files/" + f.ID}
			if c, _, err := image.DecodeConfig(bytes.NewReader(f.Content)); err == nil {
				file.Width, file.Height = c.Width, c.Height
			}
			out.Files = append(out.Files, file)
		}
	}
	return out
}

// Messages lists a channel's visible messages with thread replies, oldest first.
func (s *Server) Messages(channel string) []LabMessage { return s.messages(channel, "") }

// MessagesFor adds the ephemeral messages that a person sees; "*" adds everybody's.
func (s *Server) MessagesFor(channel, user string) []LabMessage {
	if u, ok := s.ws.User(user); ok {
		user = u.ID
	}
	return s.messages(channel, user)
}

func (s *Server) messages(channel, viewer string) []LabMessage {
	out := []LabMessage{}
	if ch, ok := s.ws.Channel(channel); ok {
		for _, m := range s.ws.Messages(ch.ID, viewer) {
			out = append(out, s.labMessage(m))
		}
	}
	return out
}

func (s *Server) labMessages(r *http.Request) (any, error) {
	ch, ok := s.ws.Channel(r.PathValue("id"))
	if !ok {
		return nil, refusal("channel_not_found", "no channel %q; GET /lab/channels lists them", r.PathValue("id"))
	}
	if u := r.URL.Query().Get("user"); u != "" {
		return s.MessagesFor(ch.ID, u), nil
	}
	return s.Messages(ch.ID), nil
}

// LabView is an open modal with its blocks at hand.
type LabView struct {
	workspace.View
	Blocks   []any  `json:"blocks"`
	Metadata string `json:"private_metadata"`
}

// Views lists the open modals of everybody.
func (s *Server) Views() []LabView {
	out := []LabView{}
	for _, v := range s.ws.Views() {
		out = append(out, labView(v))
	}
	return out
}

func labView(v workspace.View) LabView {
	meta, _ := v.Def()["private_metadata"].(string)
	return LabView{View: v, Blocks: v.BlockList(), Metadata: meta}
}

// PageCount says who was notified by mentions.
type PageCount struct {
	// Total counts people per message: a message to a channel of ten counts nine.
	Total int `json:"total"`
	// Messages is how many messages notified anybody.
	Messages int `json:"messages"`
	// Silent is how many edits and ephemeral messages carried live mention markup. Slack does not
	// notify for those, but they show the same injection.
	Silent  int              `json:"silent"`
	Entries []workspace.Page `json:"entries"`
}

// Pages counts the people paged so far.
func (s *Server) Pages() PageCount {
	out := PageCount{Entries: s.ws.Pages()}
	for _, p := range out.Entries {
		if p.Silent {
			out.Silent++
			continue
		}
		out.Total += len(p.People)
		if len(p.People) > 0 {
			out.Messages++
		}
	}
	return out
}

// Limits says whether calls over Slack's limits are refused, and how often each method was
// over its own.
func (s *Server) Limits() (enforced bool, over map[string]int) { return s.api.Limits.Report() }

func (s *Server) limits() map[string]any {
	on, over := s.Limits()
	return map[string]any{"enforce": on, "over": over}
}

// labRequests is the request log: JSON, or a line per entry with format=jsonl. after= and only=
// narrow it.
func (s *Server) labRequests(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	after, _ := strconv.Atoi(q.Get("after"))
	list := s.log.after(after, q.Get("only"))
	if q.Get("format") != "jsonl" {
		webapi.WriteJSON(w, http.StatusOK, list)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl; charset=utf-8")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, e := range list {
		_ = enc.Encode(e) // the peer may be gone
	}
}

// labFile shows a file. The content is a bot's: it gets no scripts and no origin.
func (s *Server) labFile(w http.ResponseWriter, r *http.Request) {
	f, ok := s.ws.File(r.PathValue("id"))
	if !ok {
		labAnswer(w, nil, refusal("file_not_found", "no file %q", r.PathValue("id")))
		return
	}
	kind := f.Mime
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "json") {
		kind = "text/plain; charset=utf-8"
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.URL.Query().Has("download") || !(strings.HasPrefix(kind, "text/plain") || strings.HasPrefix(kind, "image/")) {
		h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", f.Name))
	}
	_, _ = w.Write(f.Content)
}

// permalink leads from a message's link to the page.
func (s *Server) permalink(w http.ResponseWriter, r *http.Request) {
	target := "/#/" + r.PathValue("channel") + "/" + r.PathValue("message")
	if t := r.URL.Query().Get("thread_ts"); t != "" {
		target += "/" + t
	}
	http.Redirect(w, r, target, http.StatusFound)
}

// labState is everything the page needs to draw, for one person.
func (s *Server) labState(r *http.Request) (any, error) {
	user := r.URL.Query().Get("user")
	views := []LabView{}
	for _, v := range s.ws.Views() {
		if v.User == user {
			views = append(views, labView(v))
		}
	}
	out := map[string]any{
		"team": s.ws.Team(), "channels": s.ws.Channels(), "users": s.ws.Users(), "groups": s.ws.Groups(),
		"views": views, "statuses": s.ws.Statuses(), "sockets": s.hub.Count(), "limits": s.limits(), "pages": s.Pages(),
		"command": s.opt.Command, "shortcuts": s.opt.Shortcuts}
	if v, ok := s.ws.Home(user); ok {
		out["home"] = labView(v)
	}
	messages := map[string][]LabMessage{}
	for _, ch := range s.ws.Channels() {
		messages[ch.ID] = s.messages(ch.ID, user)
	}
	if u, ok := s.ws.User(user); ok {
		if ch, ok := s.ws.Channel("D" + strings.TrimPrefix(u.ID, "U")); ok {
			messages[ch.ID] = s.messages(ch.ID, user)
			out["direct"] = ch
		}
	}
	out["messages"] = messages
	return out, nil
}

// labEvent is an event as the page gets it.
type labEvent struct {
	workspace.Event
	Full *LabMessage `json:"full,omitempty"`
	Open *LabView    `json:"open,omitempty"`
}

// labEvents streams changes as server-sent events. Whoever falls behind is cut off and reads the
// state again.
func (s *Server) labEvents(w http.ResponseWriter, r *http.Request) {
	user := r.URL.Query().Get("user")
	events, cancel := s.ws.Subscribe(1024)
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	rc := http.NewResponseController(w)
	fmt.Fprint(w, "event: ready\ndata: {}\n\n")
	_ = rc.Flush()
	alive := time.NewTicker(15 * time.Second)
	defer alive.Stop()
	for {
		select {
		case e, open := <-events:
			if !open {
				return
			}
			if e.User != "" && e.User != user {
				continue
			}
			if !s.writeEvent(w, e) || rc.Flush() != nil {
				return
			}
		case <-alive.C:
			fmt.Fprint(w, ": alive\n\n")
			if rc.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Server) writeEvent(w io.Writer, e workspace.Event) bool {
	out := labEvent{Event: e}
	if e.Message != nil {
		full := s.labMessage(*e.Message)
		out.Full, out.Message = &full, nil
	}
	if e.View != nil {
		open := labView(*e.View)
		out.Open, out.View = &open, nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return true
	}
	_, err = fmt.Fprintf(w, "data: %s\n\n", raw)
	return err == nil
}
