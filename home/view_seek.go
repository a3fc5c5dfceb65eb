package home

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
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
	Excerpt string `json:"excerpt,omitempty"` // the text that was found and its surroundings, on one line
	Scanned int    `json:"scanned"`           // how many rows were looked at
}

// Seek finds the next row of a path that has a text, or is of a kind, or both: see Rows. A text is
// found wherever Rows shows it, and in the text that Rows cuts off.
func (e *Entries) Seek(ctx context.Context, r SeekRequest) (*SeekResult, error) {
	return call(ctx, e.home, "entries.seek", r, e.seek)
}

func (e *Entries) seek(ctx context.Context, r SeekRequest) (*SeekResult, error) {
	s, err := newSought(r)
	if err != nil {
		return nil, err
	}
	var result *SeekResult
	err = e.home.view(ctx, OpenRequest{r.Session, r.Link}, func(v *viewed) error {
		drawn, path, err := v.pathTo(ctx, r.Leaf)
		if err != nil {
			return err
		}
		result, err = s.seek(ctx, v, drawn, path, r)
		return err
	})
	return result, err
}

// pathTo returns a path as it is now. It may take long to read, and others look meanwhile.
func (v *viewed) pathTo(ctx context.Context, given string) (drawn render.Conversation, path []int32, err error) {
	err = v.look(ctx, func(now render.Conversation) error {
		leaf, err := v.leafNamed(given)
		if err != nil {
			return err
		}
		drawn, path = now, slices.Clone(v.trailTo(given, leaf, -1).Entries)
		return nil
	})
	return drawn, path, err
}

// How many rows are read at a time, by each processor: few at first, because the next one is often
// near.
const (
	seekFirst = 128
	seekMost  = 4096
)

// seek looks at a path, a part at a time.
func (s *sought) seek(ctx context.Context, v *viewed, drawn render.Conversation, path []int32, r SeekRequest) (*SeekResult, error) {
	result, from := &SeekResult{}, r.From
	if from < 0 {
		from += len(path)
	}
	if r.Back {
		from = min(from, len(path)-1)
	}
	from = max(from, -1)
	workers := runtime.GOMAXPROCS(0)
	for size := seekFirst; ; size = min(2*size, seekMost) {
		lo, hi := max(from, 0), min(from+size*workers, len(path))
		if r.Back {
			lo, hi = max(from+1-size*workers, 0), from+1
		}
		if lo >= hi {
			return result, ctx.Err()
		}
		rows := v.facts(path, lo, hi)
		if err := s.read(ctx, drawn, rows, (hi-lo+workers-1)/workers); err != nil {
			return nil, err
		}
		if r.Back {
			slices.Reverse(rows)
		}
		for i := range rows {
			result.Scanned++
			if excerpt, ok := s.find(&rows[i]); ok {
				result.Found, result.Index, result.Entry, result.Excerpt = true, rows[i].index, rows[i].id, excerpt
				return result, nil
			}
		}
		if from = hi; r.Back {
			from = lo - 1
		}
	}
}

// candidate is a row that may be the one.
type candidate struct {
	index   int
	number  int32
	id      string
	shape   *session.Shape
	label   string
	isFork  bool // other paths part from this one here
	unsaid  bool
	skipped bool // it cannot be the one
	entry   session.Entry
}

// facts returns the facts about a part of a path that need no reading.
func (v *viewed) facts(path []int32, lo, hi int) []candidate {
	v.mu.Lock()
	defer v.mu.Unlock()
	rows := make([]candidate, 0, hi-lo)
	for i, n := range path[lo:hi] {
		shape := v.sketch.Shape()
		next := path[lo+i+1 : min(lo+i+2, len(path))]
		rows = append(rows, candidate{
			index: lo + i, number: n, id: shape.ID(n), shape: shape, label: v.sketch.Label(n),
			isFork: v.sketch.Parts(n, next), unsaid: v.sketch.IsUnsaid(n),
		})
	}
	return rows
}

// read reads the rows that may be sought, some at the same time.
func (s *sought) read(ctx context.Context, drawn render.Conversation, rows []candidate, each int) error {
	var group sync.WaitGroup
	errs := make(chan error, len(rows)/each+1)
	for some := range slices.Chunk(rows, each) {
		group.Go(func() { errs <- s.readSome(ctx, drawn, some) })
	}
	group.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(append(all, ctx.Err())...)
}

func (s *sought) readSome(ctx context.Context, drawn render.Conversation, rows []candidate) error {
	var plain, always []int // rows of which the line says whether they need to be decoded, and others
	for i := range rows {
		row := &rows[i]
		switch row.skipped = !s.mayBe(row); {
		case row.skipped || s.text == "" && (s.kind == seekLabel || s.kind == seekBranch):
		case row.unsaid || row.shape.Type(row.number) != session.TypeMessage || s.text != "" && s.isIn(row.label):
			always = append(always, i)
		default:
			plain = append(plain, i)
		}
	}
	for _, part := range []struct {
		rows     []int
		isWanted func([]byte) bool
	}{{plain, s.mayHave}, {always, nil}} {
		numbers := make([]int32, len(part.rows))
		for i, at := range part.rows {
			numbers[i] = rows[at].number
		}
		if len(numbers) == 0 {
			continue
		}
		entries, err := rows[0].shape.Peek(numbers, part.isWanted)
		if err != nil {
			return err
		}
		for i, at := range part.rows {
			row := &rows[at]
			row.entry, row.skipped = entries[i], entries[i].Type == ""
			if err := drawn.Complete(ctx, &row.entry, row.unsaid, render.MaxOutput); err != nil {
				return err
			}
		}
	}
	return nil
}

// sought says what kind of row is looked for, and which text it contains.
type sought struct {
	kind string
	text string // in lower case
	raw  string // the longest part of the text that a line has as it is, except for the case
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
	seekMark       = "mark" // what an outline has
)

var seekKinds = []string{seekPrompt, seekAnswer, seekError, seekEdit, seekCall, seekCompaction, seekLabel, seekBranch}

func newSought(r SeekRequest) (*sought, error) {
	switch {
	case r.Text == "" && r.Kind == "":
		return nil, wrong("text", "there is nothing to look for; give {text} or {kind}")
	case r.Kind != "" && !slices.Contains(seekKinds, r.Kind):
		return nil, wrong("kind", "{kind} is %q; it must be one of %s", r.Kind, strings.Join(seekKinds, ", "))
	}
	s := &sought{kind: r.Kind, text: strings.ToLower(r.Text)}
	isOther := func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\/<>&`, r) } // JSON may have an escape for it
	for part := range strings.FieldsFuncSeq(s.text, isOther) {
		if len(part) > len(s.raw) {
			s.raw = part
		}
	}
	return s, nil
}

// mayBe reports whether a row may be of the kind that is sought, before it is read.
func (s *sought) mayBe(row *candidate) bool {
	isMessage := row.unsaid || row.shape.Type(row.number) == session.TypeMessage
	role, known := row.shape.Role(row.number)
	switch s.kind {
	case "":
		return true
	case seekLabel:
		return row.label != ""
	case seekBranch:
		return row.isFork
	case seekCompaction:
		return row.shape.Type(row.number) == session.TypeCompaction
	case seekMark:
		return row.label != "" || row.shape.Type(row.number) == session.TypeCompaction || isMessage && (!known || role == session.RoleUser)
	case seekPrompt:
		return isMessage && (row.unsaid || !known || role == session.RoleUser)
	case seekAnswer:
		return isMessage && (row.unsaid || !known || role == session.RoleAssistant)
	}
	return isMessage
}

// mayHave reports whether the line of a message may have what is sought. What is kept in a blob is
// not in the line.
func (s *sought) mayHave(line []byte) bool {
	has := func(text string) bool { return bytes.Contains(line, []byte(text)) }
	switch s.kind {
	case seekCall, seekEdit:
		if !has(`"tool_use"`) {
			return false
		}
	case seekError:
		if !has(`"is_error":true`) && !has(`"is_error": true`) && !has(`"error"`) && !has(`"failed"`) {
			return false
		}
	}
	return s.raw == "" || containsFold(line, s.raw) || has(`"blob":`) || hasHidden(line)
}

// containsFold reports whether a line has a text in lower case, in any case.
func containsFold(line []byte, lower string) bool {
	for i := range len(line) - len(lower) + 1 {
		n := 0
		for n < len(lower) && lowerASCII[line[i+n]] == lower[n] {
			n++
		}
		if n == len(lower) {
			return true
		}
	}
	return false
}

var lowerASCII = func() (table [256]byte) {
	for i := range table {
		if table[i] = byte(i); i >= 'A' && i <= 'Z' {
			table[i] += 'a' - 'A'
		}
	}
	return table
}()

// hasHidden reports whether a line has letters in escapes.
func hasHidden(line []byte) bool {
	for {
		at := bytes.Index(line, []byte(`\u00`))
		if at < 0 || at+4 >= len(line) {
			return false
		}
		if line = line[at+4:]; line[0] >= '2' && line[0] <= '7' {
			return true
		}
	}
}

// isKind reports whether an entry is of the kind that is sought. It does not know labels and
// branches: mayBe does.
func (s *sought) isKind(e *session.Entry) bool {
	switch s.kind {
	case "", seekLabel, seekBranch:
		return true
	case seekCompaction:
		return e.Type == session.TypeCompaction
	case seekPrompt:
		return e.Message != nil && e.Message.Role == session.RoleUser
	case seekMark: // or it has a label
		return e.Compaction != nil || e.BeginsTurn()
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

// find reports whether a row matches, and returns the text that was found with a little around
// it.
func (s *sought) find(row *candidate) (excerpt string, ok bool) {
	if row.skipped || !s.isKind(&row.entry) {
		return "", false
	}
	if s.text == "" {
		return "", true
	}
	for text := range row.texts {
		if at, end := indexFold(text, s.text); at >= 0 {
			return textAround(text, at, end), true
		}
	}
	return "", false
}

// isIn reports whether a text has the one that is sought.
func (s *sought) isIn(text string) bool {
	at, _ := indexFold(text, s.text)
	return at >= 0
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

// textAround returns a part of a text with a little before and after it, on one line.
func textAround(text string, at, end int) string {
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

// texts yields the texts of a row.
func (row *candidate) texts(yield func(string) bool) {
	if row.label != "" && !yield(row.label) {
		return
	}
	switch e := &row.entry; {
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
		case c.Raw != nil:
			ok = yield(string(c.Raw))
		default:
			ok = mediaTexts(c, yield)
		}
		if !ok {
			return false
		}
	}
	return true
}

// mediaTexts yields the name, the type and the address of an image, a recording or a file.
func mediaTexts(c *session.Content, yield func(string) bool) bool {
	if c.File != nil && !yield(c.File.Name) {
		return false
	}
	source := c.Source()
	if source == nil {
		return true
	}
	return yield(source.MediaType) && (source.Type != "url" || yield(source.Data))
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
	case json.RawMessage: // a large one, which was not decoded
		return yield(string(v))
	}
	return true
}
