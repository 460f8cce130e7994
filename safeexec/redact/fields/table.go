package fields

import (
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/words"
)

// maxHeader bounds the lines of a table, maxHead a cell of its header.
const (
	maxHeader = 4096
	maxHead   = 40
)

// A column of a table is the range of its cell in a line.
type column struct{ start, end int }

// A tableHead is what the header of a table says about its columns.
type tableHead struct {
	sep    byte // what separates cells; 0 are blanks
	cols   []column
	secret []int // columns of secrets
	weak   bool  // which must look like some
	names  int   // the column of names, and
	value  int   // of their values, -1 when there is none
}

// headerCell handles a label that is a cell in the header of a table.
func (s *Fields) headerCell(l scan.Label) bool {
	after := s.Blanks(l.End)
	if l.Start < s.tableDone || after >= len(s.T) || s.Separator(after) > 0 {
		return false
	}
	next := s.T[l.End]
	if after-l.End < 2 && next != '\t' && next != ',' && s.T[after] != '|' && !s.Newline(after) {
		return false
	}
	return s.table(l.Start)
}

// table masks the sensitive cells of the table whose header holds position a.
// It says whether there is such a table.
func (s *Fields) table(a int) bool {
	start, end := s.LineStart(a), s.LineEnd(a)
	if a < s.tableDone || end-start > maxHeader || end >= len(s.T) {
		return false
	}
	h, ok := s.tableHead(strings.TrimRight(s.T[start:end], "\r"), end+1)
	if !ok || s.rowBefore(h, start) {
		return false
	}
	if h.sep == '\t' || h.sep == ',' || h.sep == ';' {
		if s.pairList(h, start, end) {
			return false
		}
	}
	s.tableDone = end
	var rc []column
	at := end + 1
	for at < len(s.T) {
		stop := s.LineEnd(at)
		row := strings.TrimRight(s.T[at:stop], "\r")
		if strings.TrimSpace(row) == "" || len(row) > 2*maxHeader {
			break
		}
		if s.ruled(at) {
			at = stop + 1
			continue
		}
		if rc = cells(row, h.sep, rc[:0]); len(rc) != len(h.cols) && (h.sep != 0 || len(rc) < 2 && len(h.cols) > 1) {
			break
		}
		rc = s.row(h, at, row, rc)
		at = stop + 1
		s.tableDone = stop
	}
	return at > end+1
}

// tableHead reads a header; the line after it begins at next. A line of prose
// or of a program is none: the cells of a header are short, and of letters;
// without a rule below it they are capitalised or there are separators.
func (s *Fields) tableHead(header string, next int) (h tableHead, ok bool) {
	h = tableHead{names: -1, value: -1}
	for _, c := range []byte("\t|,;") {
		if n := strings.IndexByte(header, c); (n > 0 || n == 0 && c == '|') && (c == '\t' || c == '|' || !strings.Contains(header, "  ")) {
			h.sep = c
			break
		}
	}
	h.cols = cells(header, h.sep, nil)
	ruled := s.ruled(next)
	if len(h.cols) < 2 && !ruled || h.sep == '|' && !ruled {
		return h, false
	}
	list := strings.Contains(header, ", ") // a sentence, unless its cells are single words
	keys := false
	for i, c := range h.cols {
		cell := header[c.start:c.end]
		if list && strings.IndexByte(cell, ' ') >= 0 || !headCell(cell, ruled || h.sep == ',' || h.sep == '\t') && !(h.sep == '|' && cell == "") {
			return h, false
		}
		keys = h.column(i, cell) || keys
	}
	if keys && h.value >= 0 {
		h.secret = append(h.secret, h.value)
	}
	if h.names < 0 {
		h.value = -1
	}
	return h, len(h.secret) > 0 || h.value >= 0
}

// listed are names that stand in the first column of a list of settings.
var listed = shape.Words("host hostname server user username login name port database db url uri type email expires expires_in expiry ttl region endpoint " +
	"account tenant ssl sslmode driver address path scope issuer created updated id version enabled schema engine protocol service domain")

// pairList says whether what looks like a header is the first of a list of
// settings and their values: the cell beside the label looks like a secret while
// what stands below the label does not, or is a setting's name. Taken for a
// header it would have the names masked, and the secret left beside them.
func (s *Fields) pairList(h tableHead, start, end int) bool {
	next := s.LineEnd(end + 1)
	header, row := s.T[start:end], strings.TrimRight(s.T[end+1:next], "\r")
	rc := cells(row, h.sep, nil)
	for _, i := range h.secret {
		if i >= len(rc) {
			continue
		}
		below := row[rc[i].start:rc[i].end]
		if _, label := words.Classify("", below[:min(len(below), scan.MaxLabel)]); i == 0 && len(h.cols) == 2 && (label || shape.Fold(below, listed)) {
			return true
		}
		if shape.Secret(below) {
			continue
		}
		for k, c := range h.cols {
			if v := header[c.start:c.end]; k != i && shape.Secret(v) && !isLabel(v) {
				return true
			}
		}
	}
	return false
}

func isLabel(v string) bool {
	_, ok := words.Classify("", v)
	return ok
}

var headSet = shape.NewSet(shape.Alphabet + " _-./#%")

// headCell says whether a cell may be one of a header. sure: something else
// shows already that the line is one.
func headCell(cell string, sure bool) bool {
	return cell != "" && len(cell) <= maxHead && strings.Count(cell, " ") <= 2 && headSet.Only(cell) && (sure || shape.Upper(cell[0]) || shape.Digit(cell[0]))
}

// column notes what the cell of a header says about its column; true when all
// values of the table are secrets.
func (h *tableHead) column(i int, cell string) (keys bool) {
	switch low := strings.ToLower(cell); low {
	case "value", "secretvalue", "secret value":
		h.value = i
	case "keyname":
		h.names = i
		return true
	case "name", "key", "variable", "setting":
		h.names = i
	default:
		if len(cell) > scan.MaxLabel {
			return false
		}
		if l, ok := words.Classify("", cell); ok && l.Noun&words.Plural == 0 {
			h.secret = append(h.secret, i)
			h.weak = h.weak || l.Weak
		}
	}
	return false
}

// rowBefore says whether the line before start has as many cells as h: then h
// is no header, but one more row.
func (s *Fields) rowBefore(h tableHead, start int) bool {
	if start < 2 || s.T[start-2] == '\n' {
		return false
	}
	from := s.LineStart(start - 2)
	row := strings.TrimRight(s.T[from:start-1], "\r")
	return len(row) <= maxHeader && len(h.cols) > 1 && len(cells(row, h.sep, nil)) == len(h.cols) && !s.ruled(from)
}

// ruled says whether a line of dashes starts at i.
func (s *Fields) ruled(i int) bool {
	if i >= len(s.T) {
		return false
	}
	line := s.Peek(i, s.LineEnd(i)-i)
	return strings.Contains(line, "---") && strings.Trim(line, "-+=|: \r") == ""
}

// cells splits a line into out.
func cells(line string, sep byte, out []column) []column {
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

// trim narrows a cell to what is in its blanks and quotes.
func trim(line string, a, b int) column {
	for a < b && (line[a] == ' ' || line[a] == '"' || line[a] == '\'') {
		a++
	}
	for b > a && (line[b-1] == ' ' || line[b-1] == '"' || line[b-1] == '\'') {
		b--
	}
	return column{a, b}
}

// row masks the secret cells of a row that starts at at and is cut into rc.
func (s *Fields) row(h tableHead, at int, row string, rc []column) []column {
	if h.sep == 0 && len(rc) != len(h.cols) {
		rc = byPlace(row, h.cols, rc[:0])
	}
	for _, i := range h.secret {
		s.cell(at, row, rc, i, h.weak)
	}
	if h.value < 0 || h.names >= len(rc) || h.value >= len(rc) {
		return rc
	}
	if name := row[rc[h.names].start:rc[h.names].end]; len(name) <= scan.MaxLabel {
		if l, ok := words.Classify("", name); ok {
			s.cell(at, row, rc, h.value, l.Weak)
		}
	}
	return rc
}

// byPlace cuts a row where its header's columns begin, moved to a blank.
func byPlace(row string, cols, out []column) []column {
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
func (s *Fields) cell(at int, row string, rc []column, i int, weak bool) {
	if i >= len(rc) || rc[i].end-rc[i].start < 3 {
		return
	}
	v := row[rc[i].start:rc[i].end]
	if strings.Trim(v, "-=+") == "" {
		return
	}
	w := scan.Value{Start: at + rc[i].start, End: at + rc[i].end, After: at + rc[i].end}
	if s.Harmless(scan.Label{Label: words.Label{Noun: words.Pass}}, w, v) || weak && !shape.Secret(v) {
		return
	}
	s.Mask(w.Start, w.End, scan.Password)
}
