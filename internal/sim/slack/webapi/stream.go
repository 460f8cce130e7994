package webapi

import (
	"encoding/json"

	"ghostbot/internal/sim/slack/blockkit"
	"ghostbot/internal/sim/slack/workspace"
)

// startStream begins a message whose text arrives in pieces. In channels it must be a reply, and
// say for whom it is.
func (c *call) startStream() (reply, error) {
	ch, err := c.writable("channel")
	if err != nil {
		return nil, err
	}
	if !ch.IM {
		if err := c.need("thread_ts", "recipient_user_id", "recipient_team_id"); err != nil {
			return nil, err
		}
	}
	text, err := c.pieces()
	if err != nil {
		return nil, err
	}
	t := c.ws.Team()
	m := workspace.Message{Channel: ch.ID, ThreadTS: c.args["thread_ts"], User: t.BotUID, BotID: t.BotID, Streaming: true}
	stream(&m, text)
	posted, err := c.ws.Post(m, "")
	if err != nil {
		return nil, err
	}
	return reply{"channel": posted.Channel, "ts": posted.TS}, nil
}

func stream(m *workspace.Message, text string) {
	m.Text = text
	if text == "" {
		m.Blocks = nil
		return
	}
	b, err := json.Marshal([]any{map[string]any{"type": "markdown", "text": text}})
	if err == nil {
		m.Blocks = b
	}
}

// pieces reads markdown_text, or the markdown among the chunks; other chunks are only checked.
func (c *call) pieces() (string, error) {
	text := c.args["markdown_text"]
	s := c.args["chunks"]
	if s == "" {
		return text, nil
	}
	var chunks []struct{ Type, Text, ID, Title string }
	if json.Unmarshal([]byte(s), &chunks) != nil {
		return "", fail("invalid_chunks")
	}
	for _, ch := range chunks {
		switch ch.Type {
		case "markdown_text":
			text += ch.Text
		case "task_update", "plan_update", "blocks":
		default:
			return "", fail("invalid_chunks")
		}
	}
	return text, nil
}

func (c *call) appendStream() (reply, error) { return c.extend(nil, false) }

func (c *call) stopStream() (reply, error) {
	l, err := blockkit.Decode([]byte(c.args["blocks"]))
	if err != nil {
		return nil, fail("invalid_blocks_format")
	}
	if bad := blockkit.CheckMessage(l); len(bad) > 0 {
		return nil, invalid("invalid_blocks", bad)
	}
	return c.extend(l, true)
}

func (c *call) extend(blocks []any, stop bool) (reply, error) {
	ch, err := c.channel("channel")
	if err != nil {
		return nil, err
	}
	if m, ok := c.ws.Message(ch.ID, c.args["ts"]); ok && !m.Streaming {
		return nil, fail("message_not_in_streaming_state")
	}
	text, err := c.pieces()
	if err != nil {
		return nil, err
	}
	m, err := c.ws.Update(ch.ID, c.args["ts"], c.ws.Team().BotUID, "", func(m *workspace.Message) {
		stream(m, m.Text+text)
		m.Streaming = !stop
		if len(blocks) > 0 {
			all, err := json.Marshal(append(m.BlockList(), blocks...))
			if err == nil {
				m.Blocks = all
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if stop {
		return c.shown(m), nil
	}
	return reply{"channel": ch.ID, "ts": m.TS}, nil
}
