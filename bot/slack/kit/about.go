package kit

import "ghostbot/bot/show"

// About is what the metadata of a message says of it.
func About(m show.Message) map[string]any {
	of := map[string]any{"case": m.SessionID, "key": m.Key, "entry": m.Entry}
	if h := head(m); h != "" {
		of["head"] = h
	}
	return of
}

// IsAbout reports whether metadata is about m. A case that began anew in its thread has other entries under the same
// numbers: a line of the log, or words, with another head are of an entry that was lost, and stand for none of now.
// Older versions named no head.
func IsAbout(of map[string]any, m show.Message) bool {
	was, named := of["head"]
	return of["case"] == m.SessionID && of["key"] == m.Key && (!named || head(m) == "" || was == head(m))
}

// head is the case's head in a message that is never edited.
func head(m show.Message) string {
	switch {
	case m.Kind == show.KindSay:
		return m.Head
	case m.Kind == show.KindLog && m.Log != nil:
		return m.Log.Head
	}
	return ""
}
