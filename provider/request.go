package provider

import (
	"encoding/json"
	"regexp"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// toolName is what every provider accepts as the name of a tool.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })

// noArguments is the schema of a tool that takes none.
var noArguments = json.RawMessage(`{"type":"object","properties":{}}`)

// Check returns what is wrong with a request for any provider, as session.ErrInvalid.
func (r *Request) Check() error {
	if r == nil || len(r.Entries) == 0 {
		return invalid("the request has no messages")
	}
	if err := CheckThinking(r.Thinking); err != nil {
		return err
	}
	if r.MaxTokens < 0 {
		return invalid("max_tokens is %d; it must not be negative", r.MaxTokens)
	}
	return CheckTools(r.Tools)
}

// CheckTools returns what is wrong with a list of tools, as session.ErrInvalid.
func CheckTools(tools []Tool) error {
	seen := make(map[string]bool)
	for _, tool := range tools {
		switch {
		case !toolName().MatchString(tool.Name):
			return invalid("the tool %q must have a name of 1 to 64 letters, digits, _ and -", tool.Name)
		case seen[tool.Name]:
			return invalid("there are two tools called %s", tool.Name)
		case len(tool.Schema) > 0 && rawjson.Kind(tool.Schema) != 'o' || len(tool.Schema) > 0 && !rawjson.Valid(tool.Schema):
			return invalid("the schema of the tool %s must be a JSON object", tool.Name)
		}
		seen[tool.Name] = true
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &session.Error{Op: "ask", Err: session.Invalidf(format, args...)}
}

// Arguments returns the tool's schema, as that of an object and without white space, or the
// schema of a tool that takes no arguments.
func (t *Tool) Arguments() json.RawMessage {
	if compact, err := rawjson.Compact(t.Schema); err == nil && len(t.Schema) > 0 {
		return objectSchema(compact)
	}
	return noArguments
}

// Finish returns the body of a request: the members that come first, the
// conversation, and the members that the caller adds, which win.
func (r *Request) Finish(first session.Fields, m *Messages) *Encoded {
	all := rawjson.Members(slices.Clone(first))
	all.Merge(rawjson.Members(m.Fields))
	all.Merge(rawjson.Members(r.Fields))
	return &Encoded{Body: all.JSON(), Notes: m.Notes}
}

// Unsupported returns notes about what a request asks for and its model is not known to take:
// thinking, a temperature. thinks and warm say what was sent.
func (r *Request) Unsupported(f Family, thinks, warm bool) []Note {
	var notes []Note
	if !thinks && r.Thinking != "" && r.Thinking != ThinkingOff && !f.Thinks() {
		notes = append(notes, Note{What: "the thinking level is not sent: the model is not known to take one"})
	}
	if !warm && r.Temperature != nil {
		notes = append(notes, Note{What: "the temperature is not sent: the model is not known to take one here"})
	}
	return notes
}
