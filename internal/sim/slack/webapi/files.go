package webapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"ghostbot/internal/sim/slack/workspace"
)

// MaxUpload bounds one file.
const MaxUpload = 64 << 20

var fileMethods = map[string]method{
	"files.getUploadURLExternal":   {tier: 4, scope: "files:write", run: (*call).uploadURL},
	"files.completeUploadExternal": {tier: 4, scope: "files:write", run: (*call).completeUpload},
	"files.info":                   {tier: 4, scope: "files:read", run: (*call).fileInfo},
	"files.delete":                 {tier: 3, scope: "files:write", run: (*call).fileDelete},
}

func (c *call) uploadURL() (reply, error) {
	if err := c.need("filename", "length"); err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(c.args["length"], 10, 64)
	if err != nil || n <= 0 || n > MaxUpload {
		return nil, fail("invalid_arguments")
	}
	f := c.ws.Reserve(c.ws.Team().BotUID, c.args["filename"], c.args["alt_txt"], n)
	return reply{"upload_url": c.base + "/upload/v1/" + f.Secret, "file_id": f.ID}, nil
}

// ServeUpload takes the second step of an upload: any multipart body whose first file part counts,
// or the bare bytes.
func (a *API) ServeUpload(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, MaxUpload+(1<<20))
	content, err := uploaded(r)
	rec := Call{Time: a.opt.Now(), Method: "(upload)", HTTP: r.Method, Agent: r.UserAgent(), Status: http.StatusOK, OK: true,
		Args: map[string]string{"bytes": strconv.Itoa(len(content))}}
	defer func() { a.opt.Record(rec) }()
	if err == nil {
		err = a.ws.Upload(strings.TrimPrefix(r.URL.Path, "/upload/v1/"), content)
	}
	if err != nil {
		rec.Status, rec.OK, rec.Error = http.StatusBadRequest, false, err.Error()
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(w, "OK - "+strconv.Itoa(len(content)))
}

func uploaded(r *http.Request) ([]byte, error) {
	mr, err := r.MultipartReader()
	if err != nil {
		return io.ReadAll(r.Body)
	}
	for {
		p, err := mr.NextPart()
		if err != nil {
			return nil, workspace.ErrNoFile
		}
		if p.FileName() != "" {
			return io.ReadAll(p)
		}
	}
}

func (c *call) completeUpload() (reply, error) {
	var files []struct{ ID, Title string }
	if json.Unmarshal([]byte(c.args["files"]), &files) != nil || len(files) == 0 {
		return nil, fail("invalid_arguments")
	}
	channels, err := c.sharedWith()
	if err != nil {
		return nil, err
	}
	out := []any{}
	var ids []string
	for _, f := range files {
		done, err := c.ws.Finish(f.ID, f.Title, channels)
		if err != nil {
			return nil, err
		}
		ids = append(ids, f.ID)
		out = append(out, FileWire(c.base, c.ws.Team().ID, done))
	}
	got, err := c.content()
	if err != nil {
		return nil, err
	}
	text := c.args["initial_comment"]
	if text != "" {
		got.blocks = nil // Slack ignores blocks beside a comment
	}
	t := c.ws.Team()
	for _, ch := range channels {
		_, err := c.ws.Post(workspace.Message{Channel: ch, ThreadTS: c.args["thread_ts"], User: t.BotUID, BotID: t.BotID,
			Subtype: "file_share", Text: text, Blocks: got.blocks, FileIDs: ids}, "")
		if err != nil {
			return nil, err
		}
	}
	return reply{"files": out}, nil
}

// sharedWith resolves the channels a file goes to; none keeps it private.
func (c *call) sharedWith() ([]string, error) {
	refs := stringList(c.args["channels"])
	if id := c.args["channel_id"]; id != "" {
		refs = append(refs, id)
	}
	if len(refs) > 100 {
		return nil, fail("channels_limit_exceeded")
	}
	var out []string
	for _, r := range refs {
		c.args["channel"] = r
		ch, err := c.writable("channel")
		if err != nil {
			return nil, err
		}
		out = append(out, ch.ID)
	}
	return out, nil
}

func (c *call) fileInfo() (reply, error) {
	f, ok := c.ws.File(c.args["file"])
	if !ok {
		return nil, fail("file_not_found")
	}
	return reply{"file": FileWire(c.base, c.ws.Team().ID, f), "comments": []any{}}, nil
}

func (c *call) fileDelete() (reply, error) {
	if !c.ws.RemoveFile(c.args["file"]) {
		return nil, fail("file_not_found")
	}
	return reply{}, nil
}

// ServePrivate hands out url_private to whoever has the bot's token.
func (a *API) ServePrivate(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/files-pri/"), "/")
	_, id, _ := strings.Cut(parts[0], "-")
	f, ok := a.ws.File(id)
	rec := Call{Time: a.opt.Now(), Method: "(download)", HTTP: r.Method, Agent: r.UserAgent(), Token: MaskToken(token),
		Status: http.StatusOK, OK: true, Args: map[string]string{"file": id}}
	defer func() { a.opt.Record(rec) }()
	if !ok || token != a.opt.BotToken {
		rec.Status, rec.OK, rec.Error = http.StatusNotFound, false, "not found"
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", f.Mime)
	_, _ = w.Write(f.Content)
}
