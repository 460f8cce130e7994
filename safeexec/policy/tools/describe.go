package tools

import "strings"

// Doc describes, for a manual, what runs without a person.
type Doc struct {
	Name  string    // the program, or the words that select its sub command
	Other []string  // its other names
	Safe  string    // what is SAFE, in a few words; empty for sub commands
	Flags []FlagDoc // flags that are SAFE
	Words []FlagDoc // keywords that are SAFE, with their values
	Never []FlagDoc // flags and words that are known and never SAFE
	Needs []string  // what must be given, and why
	Args  []string  // operands
	Subs  []Doc     // sub commands
}

// FlagDoc is one line of a Doc.
type FlagDoc struct {
	Names []string
	Value string // what the value is; empty when there is none
	Why   string // why it is never SAFE
}

// Describe returns what the tables say, in their order.
func (t *Table) Describe() []Doc {
	docs := make([]Doc, 0, len(t.order))
	for _, n := range t.order {
		docs = append(docs, n.doc())
	}
	return docs
}

func (n *node) doc() Doc {
	d := Doc{Name: n.names[0], Other: n.names[1:], Safe: n.safe}
	for _, f := range n.listed {
		if n.flags[f.names[0]] != f {
			continue // replaced by a later line
		}
		line := FlagDoc{Names: f.names, Why: f.no}
		switch {
		case f.no != "":
			d.Never = append(d.Never, line)
			continue
		case f.value != nil:
			line.Value = f.value.describe()
		}
		d.Flags = append(d.Flags, line)
	}
	for _, e := range n.entries {
		n.describeEntry(&d, e)
	}
	for _, r := range n.rules {
		what := strings.Join(r.flags, " or ")
		if r.flag != "" {
			what += " together with " + r.flag
		}
		d.Needs = append(d.Needs, what+": without it "+n.names[0]+" "+r.hint)
	}
	for _, s := range n.slots {
		d.Args = append(d.Args, s.describe())
	}
	return d
}

func (n *node) describeEntry(d *Doc, e *entry) {
	line := FlagDoc{Names: e.names, Why: e.no}
	switch {
	case e.no != "":
		d.Never = append(d.Never, line)
	case e.sub != nil:
		d.Subs = append(d.Subs, e.sub.doc())
	default:
		var values []string
		for _, v := range e.values {
			values = append(values, v.describe())
		}
		line.Value = strings.Join(values, ", ")
		d.Words = append(d.Words, line)
	}
}

func (s slot) describe() string {
	switch {
	case s.max > 1:
		return s.value.describe() + ", several"
	case s.min == 0:
		return s.value.describe() + ", optional"
	}
	return s.value.describe()
}
