package gemini

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// refusal is an error in the API's own words.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

func refusalf(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// request is the body of generateContent, the fields that exist and no others.
type request struct {
	Contents          []content       `json:"contents"`
	SystemInstruction *content        `json:"systemInstruction"`
	Tools             []tool          `json:"tools"`
	ToolConfig        json.RawMessage `json:"toolConfig"`
	SafetySettings    json.RawMessage `json:"safetySettings"`
	GenerationConfig  json.RawMessage `json:"generationConfig"`
	CachedContent     string          `json:"cachedContent"`
}

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

type part struct {
	Text             *string           `json:"text,omitempty"`
	Thought          bool              `json:"thought,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`
}

type functionCall struct {
	ID   string         `json:"id,omitempty"`
	Name string         `json:"name"`
	Args map[string]any `json:"args,omitempty"`
}

type functionResponse struct {
	ID       string         `json:"id,omitempty"`
	Name     string         `json:"name"`
	Response map[string]any `json:"response"`
}

type tool struct {
	FunctionDeclarations []declaration `json:"functionDeclarations"`
}

type declaration struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Parameters  *schema `json:"parameters"`
}

type schema struct {
	Type             string            `json:"type"`
	Format           string            `json:"format"`
	Description      string            `json:"description"`
	Nullable         bool              `json:"nullable"`
	Enum             []string          `json:"enum"`
	Items            *schema           `json:"items"`
	Properties       map[string]schema `json:"properties"`
	Required         []string          `json:"required"`
	PropertyOrdering []string          `json:"propertyOrdering"`
	Minimum          *float64          `json:"minimum"`
	Maximum          *float64          `json:"maximum"`
	MinItems         string            `json:"minItems"`
	MaxItems         string            `json:"maxItems"`
}

func decode(body []byte) (request, error) {
	var r request
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, refusalf("Invalid JSON payload received. %v", err)
	}
	return r, nil
}

// check holds a request against the rules of the API.
func (r request) check(model string, known func(string) bool) error {
	if len(r.Contents) == 0 {
		return refusal("* GenerateContentRequest.contents: contents is not specified")
	}
	for _, t := range r.Tools {
		for i, d := range t.FunctionDeclarations {
			if err := d.check(); err != nil {
				return refusalf("* GenerateContentRequest.tools[0].function_declarations[%d].%v", i, err)
			}
		}
	}
	for i, c := range r.Contents {
		if err := c.check(); err != nil {
			return refusalf("* GenerateContentRequest.contents[%d].%v", i, err)
		}
		if err := r.turns(i); err != nil {
			return err
		}
	}
	return r.signatures(model, known)
}

func (c content) check() error {
	if c.Role != "user" && c.Role != "model" {
		return refusal("role: Please use a valid role: user, model.")
	}
	if len(c.Parts) == 0 {
		return refusal("parts: contents.parts must not be empty.")
	}
	for i, p := range c.Parts {
		n := 0
		for _, has := range []bool{p.Text != nil, p.FunctionCall != nil, p.FunctionResponse != nil} {
			if has {
				n++
			}
		}
		switch {
		case n != 1:
			return refusalf("parts[%d].data: required oneof field 'data' must have one initialized field", i)
		case p.FunctionCall != nil && c.Role != "model", p.FunctionResponse != nil && c.Role != "user":
			return refusalf("parts[%d]: a %s may not send this part", i, c.Role)
		case p.FunctionResponse != nil && p.FunctionResponse.Name == "":
			return refusalf("parts[%d].function_response.name: Name cannot be empty.", i)
		}
	}
	return nil
}

func (c content) calls() (out []*functionCall) {
	for _, p := range c.Parts {
		if p.FunctionCall != nil {
			out = append(out, p.FunctionCall)
		}
	}
	return out
}

func (c content) responses() (out []*functionResponse) {
	for _, p := range c.Parts {
		if p.FunctionResponse != nil {
			out = append(out, p.FunctionResponse)
		}
	}
	return out
}

// turns checks that content i answers the calls of the one before, each once and
// in order, and that calls stand only where a user spoke before.
func (r request) turns(i int) error {
	c := r.Contents[i]
	if len(c.calls()) > 0 && (i == 0 || r.Contents[i-1].Role != "user") {
		return refusal("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
	}
	var asked []*functionCall
	if i > 0 {
		asked = r.Contents[i-1].calls()
	}
	got := c.responses()
	switch {
	case len(got) > 0 && len(asked) == 0:
		return refusal("Please ensure that function response turn comes immediately after a function call turn.")
	case len(got) != len(asked):
		return refusal("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	}
	for k := range got {
		if got[k].Name != asked[k].Name || got[k].ID != asked[k].ID {
			return refusalf("function response %d is for %s %q, the call was %s %q", k, got[k].Name, got[k].ID, asked[k].Name, asked[k].ID)
		}
	}
	if i == len(r.Contents)-1 && len(c.calls()) > 0 {
		return refusal("Please ensure that function call turn is followed by a function response turn.")
	}
	return nil
}

// signatures checks that contents with signatures came back as they were handed
// out. Models of the third generation and later want one on the first call of
// each step of the current turn.
func (r request) signatures(model string, known func(string) bool) error {
	current := 0
	for i, c := range r.Contents {
		if c.Role == "user" && len(c.responses()) == 0 {
			current = i
		}
	}
	for i, c := range r.Contents {
		signed := slices.ContainsFunc(c.Parts, func(p part) bool { return p.ThoughtSignature != "" })
		if signed && !known(canonical(c)) {
			return refusal("Corrupted thought signature.")
		}
		if calls := c.calls(); len(calls) > 0 && !signed && i >= current && strict.MatchString(model) {
			return refusalf("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s`, position %d.", calls[0].Name, i+1)
		}
	}
	return nil
}

// strict names models that insist on signatures.
var strict = regexp.MustCompile(`^gemini-([3-9]|flash-latest|pro-latest)`)

// canonical is equal for two contents that say the same; the alphabet of base64
// does not matter.
func canonical(c content) string {
	for i, p := range c.Parts {
		if p.ThoughtSignature != "" {
			s := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(p.ThoughtSignature)
			if raw, err := base64.RawStdEncoding.DecodeString(s); err == nil {
				s = string(raw)
			}
			c.Parts = slices.Clone(c.Parts)
			c.Parts[i].ThoughtSignature = s
		}
	}
	b, _ := json.Marshal(c)
	return string(b)
}

var functionName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`)

func (d declaration) check() error {
	switch {
	case !functionName.MatchString(d.Name):
		return refusalf("name: Invalid function name %q.", d.Name)
	case d.Description == "":
		return refusalf("description: %s has none", d.Name)
	case d.Parameters == nil:
		return nil
	case d.Parameters.Type != "OBJECT":
		return refusal("parameters.type: only OBJECT is allowed")
	}
	return d.Parameters.check("parameters")
}

var schemaTypes = []string{"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"}

func (s schema) check(at string) error {
	switch {
	case !slices.Contains(schemaTypes, s.Type):
		return refusalf("%s.type: %q must be specified as one of %s", at, s.Type, strings.Join(schemaTypes, ", "))
	case s.Type == "ARRAY" && s.Items == nil:
		return refusalf("%s.items: missing field.", at)
	case s.Type == "OBJECT" && len(s.Properties) == 0:
		return refusalf("%s.properties: should be non-empty for OBJECT type", at)
	case len(s.Enum) > 0 && s.Type != "STRING":
		return refusalf("%s.enum: only allowed for STRING type", at)
	case slices.Contains(s.Enum, ""):
		return refusalf("%s.enum: cannot be empty", at)
	}
	for _, name := range s.Required {
		if _, ok := s.Properties[name]; !ok {
			return refusalf("%s.required: property %q is not defined", at, name)
		}
	}
	for name, p := range s.Properties {
		if err := p.check(at + ".properties[" + name + "]"); err != nil {
			return err
		}
	}
	if s.Items != nil {
		return s.Items.check(at + ".items")
	}
	return nil
}
