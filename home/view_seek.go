package home

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
)

// SeekRequest says what to look for on a path.
type SeekRequest struct {
	Session string `json:"session"`        // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"` // only the session that is named
	Leaf    string `json:"leaf,omitempty"` // the end of the path, as a person names it; "" means the leaf
	From    int    `json:"from,omitempty"` // the index of the first row to look at; negative, it counts from the end
	Back    bool   `json:"back,omitempty"` // towards the root
	Text    string `json:"text,omitempty"` // what the row contains, in any case
	Kind    string `json:"kind,omitempty"` // what the row is: prompt, answer, error, edit, call, compaction, label or branch
}

// SeekResult says where it was found.
type SeekResult struct {
	Found   bool   `json:"found"`
	Index   int    `json:"index"`             // of the row; meaningless if nothing was found
	Entry   string `json:"entry,omitempty"`   // its id
	Excerpt string `json:"excerpt,omitempty"` // the text that was looked for, with what is around it, on one line
	Scanned int    `json:"scanned"`           // how many rows were looked at
}

// Seek finds the next row of a path that has a text, or is of a kind, or both: see Rows. A text is
// found wherever Rows shows it, and in what Rows cuts off.
func (e *Entries) Seek(ctx context.Context, r SeekRequest) (*SeekResult, error) {
	return call(ctx, e.home, "entries.seek", r, e.seek)
}

func (e *Entries) seek(ctx context.Context, r SeekRequest) (*SeekResult, error) {
	s, err := newSought(r)
	if err != nil {
		return nil, err
	}
	var result *SeekResult
	err = e.home.look(ctx, OpenRequest{r.Session, r.Link}, func(v *viewed, drawn render.Conversation) error {
		leaf, err := v.leafNamed(r.Leaf)
		if err != nil {
			return err
		}
		path := v.trailTo(r.Leaf, leaf, -1).Entries
		result, err = v.seek(ctx, drawn, s, path, r)
		return err
	})
	return result, err
}

// seekAtOnce is how many rows are looked at between two looks at whether the caller still waits.
const seekAtOnce = 1024

// seek looks at a path, a part at a time.
func (v *viewed) seek(ctx context.Context, drawn render.Conversation, s *sought, path []int32, r SeekRequest) (*SeekResult, error) {
	from, result := r.From, &SeekResult{}
	if from < 0 {
		from += len(path)
	}
	if r.Back {
		from = min(from, len(path)-1)
	} else {
		from = max(from, 0)
	}
	for {
		lo, hi := from, min(from+seekAtOnce, len(path))
		if r.Back {
			lo, hi = max(from+1-seekAtOnce, 0), from+1
		}
		if lo >= hi {
			return result, nil
		}
		entries, err := v.sketch.Read(ctx, drawn, path[lo:hi], render.MaxOutput)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		for i := range entries {
			if r.Back {
				i = len(entries) - 1 - i
			}
			result.Scanned++
			at, n := lo+i, path[lo+i]
			label := v.sketch.Label(n)
			if !s.isKind(&entries[i], label, len(v.others(n, path[at+1:min(at+2, len(path))])) > 0) {
				continue
			}
			if excerpt, ok := s.find(&entries[i], label); ok {
				result.Found, result.Index, result.Entry, result.Excerpt = true, at, entries[i].ID, excerpt
				return result, nil
			}
		}
		if from = hi; r.Back {
			from = lo - 1
		}
	}
}

// sought is what a row must be or contain.
type sought struct {
	kind string
	text string // in lower case
}

// The kinds of rows that can be sought.
const (
	seekPrompt     = "prompt"
	seekAnswer     = "answer"
	seekError      = "error"
	seekEdit       = "edit"
	seekCall       = "call"
	seekCompaction = "compaction"
	seekLabel      = "label"
	seekBranch     = "branch"
)

var seekKinds = []string{seekPrompt, seekAnswer, seekError, seekEdit, seekCall, seekCompaction, seekLabel, seekBranch}

func newSought(r SeekRequest) (*sought, error) {
	switch {
	case r.Text == "" && r.Kind == "":
		return nil, wrong("text", "there is nothing to look for; give {text} or {kind}")
	case r.Kind != "" && !slices.Contains(seekKinds, r.Kind):
		return nil, wrong("kind", "{kind} is %q; it must be one of %s", r.Kind, strings.Join(seekKinds, ", "))
	}
	return &sought{kind: r.Kind, text: strings.ToLower(r.Text)}, nil
}

func (s *sought) isKind(e *session.Entry, label string, branches bool) bool {
	switch s.kind {
	case "":
		return true
	case seekLabel:
		return label != ""
	case seekBranch:
		return branches
	case seekCompaction:
		return e.Type == session.TypeCompaction
	case seekPrompt:
		return e.Message != nil && e.Message.Role == session.RoleUser
	}
	return e.Message != nil && s.isMessage(e.Message)
}

func (s *sought) isMessage(m *session.MessageEntry) bool {
	if s.kind == seekError && (render.Failure(m) != "" || strings.HasPrefix(render.StopWords(m), "failed")) {
		return true
	}
	return slices.ContainsFunc(m.Content, func(c session.Content) bool {
		switch s.kind {
		case seekAnswer:
			return m.Role == session.RoleAssistant && c.Text != nil && strings.TrimSpace(c.Text.Content) != ""
		case seekCall:
			return c.ToolUse != nil
		case seekEdit:
			return c.ToolUse != nil && len(files.Changes(c.ToolUse)) > 0
		}
		return c.ToolResult != nil && c.ToolResult.IsError
	})
}

// find returns the text that is sought with what is around it.
func (s *sought) find(e *session.Entry, label string) (excerpt string, ok bool) {
	if s.text == "" {
		return "", true
	}
	texts := func(yield func(string) bool) { eachText(e, label, yield) }
	for text := range texts {
		if at, end := indexFold(text, s.text); at >= 0 {
			return around(text, at, end), true
		}
	}
	return "", false
}

// indexFold returns where a text has another, which is in lower case, or -1.
func indexFold(text, lower string) (at, end int) {
	low := strings.ToLower(text)
	if at = strings.Index(low, lower); at < 0 {
		return -1, -1
	}
	if len(low) != len(text) { // the lower case of some letters has another length
		skip := utf8.RuneCountInString(low[:at])
		for at = 0; skip > 0; skip-- {
			_, size := utf8.DecodeRuneInString(text[at:])
			at += size
		}
	}
	return at, min(at+len(lower), len(text))
}

// around returns a part of a text with a little before and after it, on one line.
func around(text string, at, end int) string {
	const before, after = 40, 120
	from, to := max(at-before, 0), min(end+after, len(text))
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	excerpt := render.OneLine(text[from:to], 0)
	if from > 0 {
		excerpt = "…" + excerpt
	}
	if to < len(text) {
		excerpt += "…"
	}
	return excerpt
}

// eachText yields the texts of a row.
func eachText(e *session.Entry, label string, yield func(string) bool) {
	if label != "" && !yield(label) {
		return
	}
	switch {
	case e.Message != nil:
		_ = blockTexts(e.Message.Content, yield) && yield(render.Failure(e.Message))
	case e.Compaction != nil:
		yield(e.Compaction.Summary)
	case e.BranchSummary != nil:
		yield(e.BranchSummary.Summary)
	case e.Merge != nil:
		yield(e.Merge.Summary)
	case e.Custom != nil:
		_ = yield(e.Custom.CustomType) && valueTexts(e.Custom.Data, yield)
	case e.ContextEdit != nil:
		blockTexts(e.ContextEdit.Replacement, yield)
	default:
		yield(render.Gist(e, 0))
	}
}

func blockTexts(blocks []session.Content, yield func(string) bool) bool {
	for i := range blocks {
		ok := true
		switch c := &blocks[i]; {
		case c.Text != nil:
			ok = yield(c.Text.Content)
		case c.Thinking != nil:
			ok = yield(c.Thinking.Content)
		case c.ToolUse != nil:
			ok = yield(c.ToolUse.Name) && valueTexts(c.ToolUse.Input, yield)
		case c.ToolResult != nil:
			ok = yield(c.ToolResult.Content) && blockTexts(c.ToolResult.Parts, yield)
		default:
			ok = yield(render.MediaGist(c))
		}
		if !ok {
			return false
		}
	}
	return true
}

// valueTexts yields the texts in a value of JSON, and the names of its members.
func valueTexts(v any, yield func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return yield(v)
	case []any:
		for i := range v {
			if !valueTexts(v[i], yield) {
				return false
			}
		}
	case map[string]any:
		for key, value := range v {
			if !yield(key) || !valueTexts(value, yield) {
				return false
			}
		}
	}
	return true
}
