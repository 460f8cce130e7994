package webapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"ghostbot/internal/sim/slack/workspace"
)

// MessageWire is a message as the API and payloads show it.
func MessageWire(ws *workspace.Workspace, base string, m workspace.Message) map[string]any {
	t := ws.Team()
	out := map[string]any{"type": "message", "user": m.User, "text": m.Text, "ts": m.TS, "team": t.ID}
	if m.BotID != "" {
		out["bot_id"] = m.BotID
	}
	if m.BotID == t.BotID {
		out["app_id"] = t.AppID
		out["bot_profile"] = map[string]any{
			"id": m.BotID, "app_id": t.AppID, "name": "Ghost", "deleted": false, "updated": 0, "team_id": t.ID, "icons": map[string]any{}}
	}
	if len(m.Blocks) > 2 {
		out["blocks"] = m.Blocks
	}
	if len(m.Attachments) > 2 {
		out["attachments"] = m.Attachments
	}
	if m.Subtype != "" {
		out["subtype"] = m.Subtype
	}
	if m.EditedTS != "" {
		out["edited"] = map[string]any{"user": m.User, "ts": m.EditedTS}
	}
	if m.Metadata != nil {
		out["metadata"] = m.Metadata
	}
	if len(m.Reactions) > 0 {
		out["reactions"] = reactionWire(m)
	}
	if len(m.FileIDs) > 0 {
		out["files"] = filesWire(ws, base, m.FileIDs)
	}
	threadWire(ws, m, out)
	return out
}

func reactionWire(m workspace.Message) []any {
	var l []any
	for _, r := range m.Reactions {
		l = append(l, map[string]any{"name": r.Name, "users": r.Users, "count": len(r.Users)})
	}
	return l
}

func filesWire(ws *workspace.Workspace, base string, ids []string) []any {
	l := []any{}
	for _, id := range ids {
		if f, ok := ws.File(id); ok {
			l = append(l, FileWire(base, ws.Team().ID, f))
		}
	}
	return l
}

// threadWire adds what says that a message is a reply or has replies.
func threadWire(ws *workspace.Workspace, m workspace.Message, out map[string]any) {
	if m.ThreadTS != "" {
		out["thread_ts"] = m.ThreadTS
		if parent, ok := ws.Message(m.Channel, m.ThreadTS); ok {
			out["parent_user_id"] = parent.User
		}
		if m.Broadcast {
			out["subtype"] = "thread_broadcast"
		}
		return
	}
	if n, last, people := ws.Replies(m.Channel, m.TS); n > 0 {
		maps.Copy(out, map[string]any{"thread_ts": m.TS, "reply_count": n, "reply_users_count": len(people),
			"reply_users": people, "latest_reply": last, "subscribed": false, "is_locked": false})
	}
}

// UserWire is an account as users.info shows it.
func UserWire(u workspace.User) map[string]any {
	out := map[string]any{
		"id": u.ID, "team_id": u.TeamID, "name": u.Name, "deleted": u.Deleted, "real_name": u.RealName,
		"tz": "Etc/UTC", "tz_label": "Coordinated Universal Time", "tz_offset": 0,
		"is_admin": u.Admin, "is_owner": false, "is_primary_owner": false, "is_restricted": u.Restricted,
		"is_ultra_restricted": false, "is_bot": u.Bot, "is_app_user": false, "is_stranger": u.Stranger, "updated": 0,
		"profile": map[string]any{
			"real_name": u.RealName, "display_name": u.Name, "title": u.Title, "email": u.Email, "team": u.TeamID,
			"real_name_normalized": u.RealName, "display_name_normalized": u.Name},
	}
	if u.Enterprise != "" {
		out["enterprise_user"] = map[string]any{"id": u.ID, "enterprise_id": u.Enterprise, "enterprise_name": "Example",
			"is_admin": false, "is_owner": false, "is_primary_owner": false, "teams": u.Teams}
	}
	return out
}

// ChannelWire is a conversation as conversations.info shows it.
func ChannelWire(c workspace.Channel, botUID string) map[string]any {
	text := func(s string) map[string]any { return map[string]any{"value": s, "creator": "", "last_set": 0} }
	out := map[string]any{
		"id": c.ID, "created": c.Created, "is_archived": c.Archived, "is_im": c.IM, "is_channel": !c.IM && !c.Private,
		"is_group": false, "is_mpim": false, "is_private": c.Private, "is_general": c.Name == "general",
		"is_member": c.Member(botUID), "is_shared": false, "is_ext_shared": false, "is_org_shared": false,
		"num_members": len(c.Members), "creator": "", "unlinked": 0}
	if c.IM {
		out["user"] = c.Members[0]
		return out
	}
	out["name"], out["name_normalized"] = c.Name, c.Name
	out["topic"], out["purpose"] = text(c.Topic), text("")
	return out
}

// FileWire is a file as files.info shows it.
func FileWire(base, team string, f workspace.File) map[string]any {
	url := fmt.Sprintf("%s/files-pri/%s-%s/%s", base, team, f.ID, strings.ReplaceAll(f.Name, "/", "_"))
	return map[string]any{
		"id": f.ID, "created": f.Created, "timestamp": f.Created, "name": f.Name, "title": f.Title, "mimetype": f.Mime,
		"filetype": f.Kind, "pretty_type": strings.ToUpper(f.Kind), "user": f.User, "size": f.Length, "mode": "hosted",
		"editable": false, "is_external": false, "is_public": len(f.Channels) > 0, "alt_txt": f.Alt,
		"url_private": url, "url_private_download": url, "channels": f.Channels, "groups": []string{}, "ims": []string{},
		"permalink": fmt.Sprintf("%s/lab/files/%s", base, f.ID)}
}

// ViewWire is a view as the API and payloads show it; state is added by the caller.
func ViewWire(t workspace.Team, v workspace.View) map[string]any {
	out := v.Def()
	for k, otherwise := range map[string]any{
		"private_metadata": "", "callback_id": "", "external_id": "", "close": nil, "submit": nil,
		"clear_on_close": false, "notify_on_close": false} {
		if _, has := out[k]; !has {
			out[k] = otherwise
		}
	}
	out["id"], out["team_id"], out["hash"], out["app_id"], out["bot_id"] = v.ID, t.ID, v.Hash, t.AppID, t.BotID
	out["app_installed_team_id"], out["root_view_id"] = t.ID, v.Root
	out["previous_view_id"] = nil
	if v.Previous != "" {
		out["previous_view_id"] = v.Previous
	}
	out["state"] = map[string]any{"values": map[string]any{}}
	return out
}

// raw is for arguments that are JSON.
func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}
