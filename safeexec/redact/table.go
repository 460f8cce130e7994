package redact

import "strings"

// maxRows and maxCell bound a table.
const (
	maxRows   = 10_000
	maxHeader = 2048
)

// A column of a table is the range of its header cell in the line.
type column struct{ start, end int }

// headerCell handles a label that is a cell in the header of a table.
func (s *scanner) headerCell(l label) bool {
	if l.start < s.tableDone {
		return false
	}
	after := s.blanks(l.end)
	if after < len(s.t) && after-l.end < 2 && strings.IndexByte("\t|,\r\n", s.t[min(l.end, len(s.t)-1)]) < 0 && s.t[after] != '|' && s.t[after] != '\n' {
		return false
	}
	if l.end >= len(s.t) || separator(s.t[after:]) > 0 {
		return false
	}
	return s.table(l.start)
}

// tableHeader handles the label "value" in a header: in rows whose name is
// sensitive, or under a header with a keyName, it is a secret.
func (s *scanner) tableHeader(a int) {
	if a >= s.tableDone {
		s.table(a)
	}
}

// table masks the sensitive columns of the table whose header holds position
// a. It says whether there is such a table.
func (s *scanner) table(a int) bool {
	start, end := s.lineStart(a), s.lineEnd(a)
	if end-start > maxHeader || end >= len(s.t) {
		return false
	}
	header := strings.TrimRight(s.t[start:end], "\r")
	sep := cellSeparator(header)
	cols := cells(header, sep)
	if len(cols) < 2 && !s.ruled(end+1) || sep == ',' && strings.ContainsAny(header, ":<=(") {
		return false
	}
	secret, weak, names, value := s.sensitive(header, cols)
	if secret == nil && value < 0 {
		return false
	}
	s.tableDone = end
	rows := 0
	for at := end + 1; at < len(s.t) && rows < maxRows; rows++ {
		stop := s.lineEnd(at)
		row := strings.TrimRight(s.t[at:stop], "\r")
		if strings.TrimSpace(row) == "" || len(row) > 2*maxHeader {
			break
		}
		s.row(at, row, sep, cols, secret, weak, names, value)
		at = stop + 1
		s.tableDone = at - 1
	}
	return rows > 0
}

// ruled says whether a line of dashes starts at i.
func (s *scanner) ruled(i int) bool {
	if i >= len(s.t) {
		return false
	}
	line := s.t[i:s.lineEnd(i)]
	return strings.HasPrefix(line, "----") && strings.Trim(line, "- \r") == ""
}

// cellSeparator guesses what separates the cells of a header: a tab, a bar, a
// comma, or blanks (0).
func cellSeparator(header string) byte {
	for _, c := range []byte("\t|,;") {
		if strings.IndexByte(header, c) >= 0 && (c == '\t' || c == '|' || !strings.Contains(header, "  ")) {
			return c
		}
	}
	return 0
}

// cells splits a line.
func cells(line string, sep byte) (out []column) {
	for i := 0; i <= len(line); {
		start := i
		if sep != 0 {
			n := strings.IndexByte(line[i:], sep)
			if n < 0 {
				n = len(line) - i
			}
			i += n + 1
			out = append(out, trim(line, start, start+n))
			continue
		}
		for start < len(line) && line[start] == ' ' {
			start++
		}
		if start == len(line) {
			break
		}
		n := strings.Index(line[start:], "  ")
		if n < 0 {
			n = len(line) - start
		}
		out = append(out, column{start, start + n})
		i = start + n
	}
	return out
}

func trim(line string, a, b int) column {
	for a < b && (line[a] == ' ' || line[a] == '"' || line[a] == '\'') {
		a++
	}
	for b > a && (line[b-1] == ' ' || line[b-1] == '"' || line[b-1] == '\'') {
		b--
	}
	return column{a, b}
}

// sensitive finds the secret columns of a header, the one of names and the one
// of values. All values are secret beside a keyName.
func (s *scanner) sensitive(header string, cols []column) (secret []int, weak bool, names, value int) {
	names, value = -1, -1
	for i, c := range cols {
		cell := header[c.start:c.end]
		var w wordList
		w.split(cell)
		var l label
		switch low := strings.ToLower(cell); {
		case low == "value" || low == "secretvalue":
			value = i
		case low == "keyname":
			secret, names = append(secret, -1), i
		case low == "name" || low == "key" || low == "variable" || low == "setting":
			names = i
		case low == "key1" || low == "key2":
			secret, weak = append(secret, i), true
		case len(cell) <= maxLabel && l.classify(&w, 0) && l.noun&wPlural == 0:
			secret = append(secret, i)
			weak = weak || l.weak
		}
	}
	if len(secret) > 0 && secret[0] == -1 {
		if secret = secret[1:]; value >= 0 {
			secret = append(secret, value)
		}
	}
	if names < 0 {
		value = -1
	}
	return secret, weak, names, value
}

// row masks the secret cells of a row that starts at at.
func (s *scanner) row(at int, row string, sep byte, cols []column, secret []int, weak bool, names, value int) {
	rc := cells(row, sep)
	if sep == ',' && len(rc) != len(cols) {
		return
	}
	if sep == 0 && len(rc) != len(cols) {
		rc = s.columnsByPlace(row, cols)
	}
	for _, i := range secret {
		s.cell(at, row, rc, i, weak)
	}
	if value < 0 || names >= len(rc) || value >= len(rc) {
		return
	}
	var w wordList
	w.split(row[rc[names].start:rc[names].end])
	var l label
	if rc[names].end-rc[names].start <= maxLabel && l.classify(&w, 0) {
		s.cell(at, row, rc, value, l.weak)
	}
}

// columnsByPlace cuts a row where its header's columns begin, moved to the
// nearest blank.
func (s *scanner) columnsByPlace(row string, cols []column) (out []column) {
	for i, c := range cols {
		start, end := min(c.start, len(row)), len(row)
		if i+1 < len(cols) {
			end = min(cols[i+1].start, len(row))
		}
		for start > 0 && start < len(row) && row[start-1] != ' ' && row[start] != ' ' {
			start--
		}
		for end < len(row) && end > start && row[end-1] != ' ' {
			end--
		}
		out = append(out, trim(row, start, max(start, end)))
	}
	return out
}

// cell masks one cell when it passes the guards.
func (s *scanner) cell(at int, row string, rc []column, i int, weak bool) {
	if i >= len(rc) || rc[i].end <= rc[i].start {
		return
	}
	v := row[rc[i].start:rc[i].end]
	if strings.Trim(v, "-=+") == "" || len(v) < 3 || strings.Contains(v, " ") && !weak && len(v) > 64 {
		return
	}
	l := label{noun: wPass, cat: catPassword}
	if s.harmless(l, value{start: at + rc[i].start, end: at + rc[i].end, after: at + rc[i].end}, v) || weak && !looksSecret(v) {
		return
	}
	s.mask(at+rc[i].start, at+rc[i].end, catPassword)
}
