package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	slacksim "ghostbot/internal/sim/slack"
	"ghostbot/internal/sim/slack/workspace"
)

// demo runs the workspace, the broken services and the bot until it is interrupted.
func demo(ctx context.Context, args []string, out, log io.Writer) error {
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	addr := fs.String("addr", defaultAddr, "")
	name := fs.String("incident", "", "")
	list := fs.Bool("list", false, "")
	binary := fs.String("ghostbot", "", "")
	dir := fs.String("state-dir", "", "")
	fresh := fs.Bool("fresh", false, "")
	if err := parse(fs, args, out); err != nil {
		return err
	}
	chosen, err := selected(*name)
	if err != nil {
		return err
	}
	if *list {
		return printIncidents(out, chosen)
	}
	path, err := findBot(*binary)
	if err != nil {
		return err
	}
	if *dir, err = prepareState(*dir, *fresh); err != nil {
		return err
	}
	s, err := workspaceAt(slacksim.Options{StateFile: filepath.Join(*dir, "workspace.json"), Approvers: approversFromEnv()},
		*addr, set(fs, "addr"), log)
	if err != nil {
		return err
	}
	defer s.Close()
	symptoms, stop, err := startAll(ctx, chosen)
	defer stop()
	if err != nil {
		return err
	}
	pinGuide(s, symptoms)
	printGuide(out, s.URL, *dir, symptoms)
	superviseBot(ctx, path, botEnv(s, *dir), log)
	return nil
}

func printIncidents(out io.Writer, list []incident) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, in := range list {
		fmt.Fprintf(w, "%s\t%s\n", in.name, in.about)
	}
	return w.Flush()
}

// prepareState makes the demo's directory; fresh empties it first. Only files the demo itself
// makes are removed.
func prepareState(dir string, fresh bool) (string, error) {
	if dir == "" {
		home, err := stateHome()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, "demo")
	}
	if fresh {
		for _, name := range []string{"workspace.json", "ghostbot"} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return "", fmt.Errorf("%w: emptying %s: %v", errUnavailable, dir, err)
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "ghostbot"), 0o700); err != nil {
		return "", fmt.Errorf("%w: --state-dir: %v", errUnavailable, err)
	}
	return dir, nil
}

// startAll starts the incidents; the returned function stops those that did start.
func startAll(ctx context.Context, list []incident) (symptoms []string, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	for _, in := range list {
		r, err := in.start(ctx)
		if err != nil {
			return nil, stop, fmt.Errorf("starting incident %s: %w", in.name, err)
		}
		stops = append(stops, r.stop)
		symptoms = append(symptoms, r.symptom)
	}
	return symptoms, stop, nil
}

// guideType marks the pinned message, so that a restart replaces it instead of adding another.
const guideType = "lab_guide"

// pinGuide pins what can be pasted to #incidents.
func pinGuide(s *slacksim.Server, symptoms []string) {
	ws := s.Workspace()
	ch, ok := ws.Channel("incidents")
	if !ok {
		return
	}
	for _, m := range ws.Messages(ch.ID, "") {
		if strings.Contains(string(m.Metadata), guideType) {
			_ = ws.Delete(ch.ID, m.TS, "", "") // found a line above
		}
	}
	m, err := ws.Post(guide(ch.ID, symptoms), "")
	if err != nil {
		return
	}
	ws.Unpin(ch.ID)
	ws.Pin(ch.ID, m.TS)
}

func guide(channel string, symptoms []string) workspace.Message {
	blocks := []any{
		map[string]any{"type": "header", "text": map[string]any{"type": "plain_text", "text": "Something is broken: start here"}},
		map[string]any{"type": "section", "text": map[string]any{"type": "mrkdwn",
			"text": "Services on this machine are broken on purpose.\n1. Press *Use* on a line and then *Enter*, or say it in your own words.\n" +
				"2. Ghost answers below. Open its thread: the replies under its message.\n" +
				"3. It asks before it does anything that is not a read-only probe: approve, deny or change that. " +
				"The name at the top right lets you act as somebody else."}},
	}
	for _, sy := range symptoms {
		blocks = append(blocks, map[string]any{"type": "rich_text", "elements": []any{map[string]any{
			"type": "rich_text_preformatted", "elements": []any{map[string]any{"type": "text", "text": "/ghost investigate " + sy}}}}})
	}
	raw, _ := json.Marshal(blocks) // maps of strings
	meta, _ := json.Marshal(map[string]any{"event_type": guideType, "event_payload": map[string]any{}})
	return workspace.Message{Channel: channel, User: "U0ALERTS01", BotID: "B0ALERTS01", Subtype: "bot_message",
		Text: "Something is broken: paste one of the lines after the slash.", Blocks: raw, Metadata: meta}
}

func printGuide(out io.Writer, url, dir string, symptoms []string) {
	fmt.Fprintf(out, "\n  Slack workspace   %s\n  state             %s\n\n  Open the workspace, go to #incidents and paste one of:\n\n", url, dir)
	for _, sy := range symptoms {
		fmt.Fprintf(out, "    /ghost investigate %s\n", sy)
	}
	fmt.Fprint(out, "\n  Ctrl-C ends the demo.\n\n")
}
