package slacksim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"ghostbot/internal/sim/slack/blockkit"
	"ghostbot/internal/sim/slack/webapi"
	"ghostbot/internal/sim/slack/workspace"
)

// dispatch turns changes of the workspace into events for the app, for as long as the server lives.
func (s *Server) dispatch(events <-chan workspace.Event, cancel func()) {
	for {
		select {
		case e, open := <-events:
			if !open { // fell behind: what was missed is lost, as on a very bad day at Slack
				s.opt.Logger.Warn("events lost: the dispatcher fell behind")
				events, cancel = s.ws.Subscribe(1024)
				continue
			}
			s.event(e)
		case <-s.ctx.Done():
			cancel()
			return
		}
	}
}

func (s *Server) event(e workspace.Event) {
	m := e.Message
	if m == nil || m.Ephemeral || m.User == "USLACKBOT" || (s.opt.NoEcho && m.User == s.ws.Team().BotUID) {
		return
	}
	ch, ok := s.ws.Channel(e.Channel)
	if !ok || !ch.Member(s.ws.Team().BotUID) {
		return
	}
	kind, heard := "channel", "channels:history"
	switch {
	case ch.IM:
		kind, heard = "im", "im:history"
	case ch.Private:
		kind, heard = "group", "groups:history"
	}
	send := func(event map[string]any) {
		if s.api.Granted(heard) { // Slack tells an app nothing that it may not read
			s.send(event)
		}
	}
	wire := webapi.MessageWire(s.ws, s.base, *m)
	now := s.ws.Edited()
	switch e.Kind {
	case "message":
		wire["channel"], wire["channel_type"], wire["event_ts"] = ch.ID, kind, m.TS
		send(wire)
		if m.BotID == "" && strings.Contains(m.Text, "<@"+s.ws.Team().BotUID+">") && !ch.IM && s.api.Granted("app_mentions:read") {
			mention := map[string]any{}
			for k, v := range wire {
				mention[k] = v
			}
			mention["type"] = "app_mention"
			delete(mention, "channel_type")
			s.send(mention)
		}
	case "message_changed":
		send(map[string]any{"type": "message", "subtype": "message_changed", "hidden": true, "channel": ch.ID,
			"channel_type": kind, "ts": now, "event_ts": now, "message": wire})
	case "message_deleted":
		send(map[string]any{"type": "message", "subtype": "message_deleted", "hidden": true, "channel": ch.ID,
			"channel_type": kind, "ts": now, "event_ts": now, "deleted_ts": m.TS, "previous_message": wire})
	}
}

// send wraps an event as Slack does and hands it to the hub.
func (s *Server) send(event map[string]any) {
	t := s.ws.Team()
	s.hub.Event(map[string]any{
		"token": "", "team_id": t.ID, "api_app_id": t.AppID, "type": "event_callback", "event": event,
		"event_id": s.ws.NextID("Ev"), "event_time": time.Now().Unix(), "is_ext_shared_channel": false,
		"authorizations": []any{map[string]any{
			"enterprise_id": nil, "team_id": t.ID, "user_id": t.BotUID, "is_bot": true, "is_enterprise_install": false}}})
}

// OpenHome is a person opening the app's Home tab.
func (s *Server) OpenHome(user string) error {
	u, err := s.person(user)
	if err != nil {
		return err
	}
	ch, _ := s.ws.Direct(u.ID)
	s.send(map[string]any{"type": "app_home_opened", "user": u.ID, "channel": ch.ID, "tab": "home", "event_ts": s.ws.Edited()})
	return nil
}

var mentionMarkup = regexp.MustCompile(`<@(U[A-Z0-9]+)(?:\|[^<>]*)?>|(^|[\s(])@([a-z0-9._-]*[a-z0-9])`)

// compose is what Slack's composer makes of typed text: mentions of known people and groups become
// markup, as do @channel, @here and @everyone, and everything else is escaped.
func (s *Server) compose(text string) string {
	var out strings.Builder
	last := 0
	for _, at := range mentionMarkup.FindAllStringSubmatchIndex(text, -1) {
		hit := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return text[at[2*i]:at[2*i+1]]
		}
		markup := s.mention(hit(1), hit(3))
		if markup == "" {
			continue
		}
		out.WriteString(blockkit.Escape(text[last:at[0]]) + blockkit.Escape(hit(2)) + markup)
		last = at[1]
	}
	out.WriteString(blockkit.Escape(text[last:]))
	return out.String()
}

func (s *Server) mention(id, name string) string {
	if name == "channel" || name == "here" || name == "everyone" {
		return "<!" + name + ">"
	}
	for _, g := range s.ws.Groups() {
		if name != "" && g.Handle == name {
			return "<!subteam^" + g.ID + ">"
		}
	}
	ref := id
	if ref == "" {
		ref = name
	}
	if u, ok := s.ws.User(ref); ok && ref != "" {
		return "<@" + u.ID + ">"
	}
	return ""
}

// serveResponse answers a response URL.
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	rec := Entry{Time: start, Kind: "response_url", HTTP: r.Method, Agent: r.UserAgent(), Status: http.StatusOK, OK: true}
	if json.Valid(body) {
		rec.Body = json.RawMessage(s.mask(string(body)))
	}
	defer func() {
		rec.DurationMS = float64(time.Since(start).Microseconds()) / 1000
		s.log.add(rec)
	}()
	h, useErr := s.ws.UseHook(strings.TrimPrefix(r.URL.Path, "/respond/"))
	switch {
	case errors.Is(useErr, workspace.ErrExpired):
		rec.Status, rec.Error = http.StatusNotFound, "expired_url"
	case errors.Is(useErr, workspace.ErrExchanged), useErr != nil:
		rec.Status, rec.Error = http.StatusNotFound, "used_url"
	case err != nil:
		rec.Status, rec.Error = http.StatusBadRequest, "invalid_payload"
	default:
		if err := s.respond(h, body); err != nil {
			rec.Status, rec.Error = http.StatusBadRequest, err.Error()
		}
	}
	rec.OK = rec.Error == ""
	if !rec.OK {
		webapi.WriteJSON(w, rec.Status, map[string]any{"ok": false, "error": rec.Error})
		return
	}
	webapi.WriteJSON(w, http.StatusOK, map[string]any{"ok": true})
}

// response is the body of a response URL and of the payload that acknowledges a command.
type response struct {
	Text            string          `json:"text"`
	Blocks          json.RawMessage `json:"blocks"`
	Attachments     json.RawMessage `json:"attachments"`
	ResponseType    string          `json:"response_type"`
	ReplaceOriginal bool            `json:"replace_original"`
	DeleteOriginal  bool            `json:"delete_original"`
	ThreadTS        string          `json:"thread_ts"`
}

// respond does what a response asks for. New messages are ephemeral unless they say in_channel.
func (s *Server) respond(h workspace.Hook, body []byte) error {
	var r response
	if err := json.Unmarshal(body, &r); err != nil {
		return errors.New("invalid_payload")
	}
	list, err := blockkit.Decode(r.Blocks)
	if err != nil {
		return errors.New("invalid_blocks_format")
	}
	if len(blockkit.CheckMessage(list)) > 0 {
		return errors.New("invalid_blocks")
	}
	if blockkit.TotalText(list) > blockkit.MaxTotalText {
		return errors.New("msg_blocks_too_long")
	}
	if string(bytes.TrimSpace(r.Attachments)) == "null" {
		r.Attachments = nil
	}
	switch {
	case r.DeleteOriginal && h.TS != "":
		return s.ws.Delete(h.Channel, h.TS, "", h.Cause)
	case r.Text == "" && len(list) == 0 && len(r.Attachments) == 0:
		if h.Command {
			return nil // an acknowledgement without a message
		}
		return errors.New("no_text")
	case r.ReplaceOriginal && h.TS != "":
		_, err := s.ws.Update(h.Channel, h.TS, "", h.Cause, func(m *workspace.Message) {
			m.Text, m.Blocks, m.Attachments = r.Text, r.Blocks, r.Attachments
			if len(list) == 0 {
				m.Blocks = nil
			}
		})
		return err
	}
	t := s.ws.Team()
	m := workspace.Message{Channel: h.Channel, ThreadTS: r.ThreadTS, User: t.BotUID, BotID: t.BotID, Text: r.Text,
		Attachments: r.Attachments}
	if len(list) > 0 {
		m.Blocks = r.Blocks
	}
	if m.ThreadTS == "" {
		m.ThreadTS = h.ThreadTS
	}
	if r.ResponseType != "in_channel" {
		m.Ephemeral, m.To = true, h.User
	}
	_, err = s.ws.Post(m, h.Cause)
	return err
}
