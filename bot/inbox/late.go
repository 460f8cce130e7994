package inbox

import (
	"context"
	"encoding/json"

	"ghostbot/bot/show"
	"ghostbot/store"
)

// Late are messages that say of each instruction that is left at the end of a case that nobody read it.
func Late(ctx context.Context, db store.DB, sid string) (out []show.Message, err error) {
	items, err := db.List(ctx, sid, "inbox/")
	for _, v := range items {
		var it Item
		if json.Unmarshal(v.Data, &it) != nil || it.Instruction == nil {
			continue
		}
		text := "This came after the report and was not read: " + it.Instruction.Text + ". Open a new case if it matters."
		out = append(out, show.Message{Key: "late/" + v.Key.Name, Kind: show.KindLog, Text: text, Log: &show.LogView{What: "notice", By: it.Instruction.By, Body: text}})
	}
	return out, err
}
