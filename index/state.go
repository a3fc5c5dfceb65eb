package index

import (
	"cmp"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// maxCalls is how many of a session's latest tool calls are remembered, to know
// whose output comes later.
const maxCalls = 64

// state is a session's row while its log is being read.
type state struct {
	id   int64
	name string

	sid, tail, key, native                string
	title, given, cwd                     string
	names                                 []givenName // of the entries that it begins with, and the last of the others
	first                                 Title
	agent                                 string // "" if the log cannot be read as a session
	parent, relation, continuedTo, leafID string
	original                              string
	pinned, archived                      bool
	created, updated, said                int64
	entries, messages, branches           int64
	billed, recorded, tokens              int64
	context, problems, docs               int64
	size, modified, continuation          int64
	pos, head, tailPos, tailSum           int64
	next, leaf, breaks                    int64
	chain                                 int64
	begins                                bool     // it continues another, and its marker has not come yet
	bills                                 []bill   // that wait for the marker
	links                                 int64    // of a chain: how many sessions it has
	missing                               []string // of a chain: those that are not there
	replaced                              []string // see session.Link
	tags                                  []string // as they were when the row was saved
	models, tools                         map[string]int64
	calls                                 []call

	dir     int64  // the name of cwd
	maker   int64  // the name of agent
	unsaved bool   // there is no row yet
	headed  bool   // the header was read: the session may have got subagents, or a parent
	row     []byte // for lists
	prev    string // the id of the entry before next; "" if not known
	// ids has the numbers of the entries that were read into this state. If isNew, the
	// session has no others. Otherwise greatest is the greatest of the others' ids.
	ids       map[string]int64
	isNew     bool
	fresh     *fresh // of a new session, as long as all its entries are in it
	orphans   []orphan
	copied    string // the entry that the leaf was last moved to for moveToCopy
	moved     bool   // the last line moved the leaf to the entry leafID, which may come later
	greatest  []byte
	files     map[string]bool // that were entered since the log was opened
	retagged  bool            // tags differ from the table's
	tagSet    *session.TagSet
	sortTitle string
}

// rowText is the text of the columns that hold JSON.
type rowText struct{ tags, models, tools, calls, replaced, names string }

// rowColumns are a row's columns, in the order of fields.
var rowColumns = []string{
	"ord", "row", "dir", "sid", "tail", "key", "native", "title", "sort_title", "given", "first", "worth", "cwd", "agent", "maker", "parent", "relation", "continued_to", "leaf_id",
	"pinned", "archived", "created", "updated", "said", "entries", "messages", "branches",
	"billed", "recorded", "tokens", "context", "problems", "docs", "size", "modified", "continuation",
	"pos", "head_hash", "tail_pos", "tail_hash", "next", "leaf", "breaks",
	"original", "begins",
	"tags", "models", "tools", "calls", "replaced", "names",
}

var (
	selectRows = `SELECT name, chain, ` + strings.Join(rowColumns, ", ") + `,
		(SELECT e.id FROM entries e WHERE e.session = sessions.id AND e.n = sessions.next - 1),
		(SELECT e.id FROM entries e WHERE e.session = sessions.id AND e.id IS NOT NULL ORDER BY e.id DESC LIMIT 1)
		FROM sessions WHERE name IN (SELECT atom FROM json_each(?))`
	updateRow = `UPDATE sessions SET ` + strings.Join(rowColumns, " = ?, ") + ` = ? WHERE id = ?`
	insertRow = `INSERT INTO sessions (` + strings.Join(rowColumns, ", ") + `, id, name) VALUES (` + strings.Repeat("?, ", len(rowColumns)+1) + `?)`
)

// fields are where a row's columns are kept.
func (s *state) fields(text *rowText) []any {
	return []any{
		&s.id, &s.row, &s.dir, &s.sid, &s.tail, &s.key, &s.native, &s.title, &s.sortTitle, &s.given, &s.first.Text, &s.first.Worth, &s.cwd, &s.agent, &s.maker, &s.parent, &s.relation, &s.continuedTo, &s.leafID,
		&s.pinned, &s.archived, &s.created, &s.updated, &s.said, &s.entries, &s.messages, &s.branches,
		&s.billed, &s.recorded, &s.tokens, &s.context, &s.problems, &s.docs, &s.size, &s.modified, &s.continuation,
		&s.pos, &s.head, &s.tailPos, &s.tailSum, &s.next, &s.leaf, &s.breaks,
		&s.original, &s.begins,
		&text.tags, &text.models, &text.tools, &text.calls, &text.replaced, &text.names,
	}
}

// loadStates returns the rows of logs by their names, of those that there are. It ignores entries
// that wait to be written: before a log is read into its state, there are none.
func (w *writer) loadStates(names []string) (map[string]*state, error) {
	rows, err := w.tx.QueryContext(w.ctx, selectRows, marshal(names))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	states := make(map[string]*state)
	for rows.Next() {
		s := &state{ids: make(map[string]int64)}
		if err := s.scan(rows); err != nil {
			return nil, err
		}
		states[s.name] = s
	}
	return states, rows.Err()
}

// scan reads a row of selectRows.
func (s *state) scan(rows *sql.Rows) error {
	var text rowText
	var prev, greatest any
	if err := rows.Scan(append(append([]any{&s.name, &s.chain}, s.fields(&text)...), &prev, &greatest)...); err != nil {
		return err
	}
	s.prev = idOf(prev)
	s.greatest, _ = greatest.([]byte)
	s.retagged = s.modified == 0
	return errors.Join(
		json.Unmarshal([]byte(text.tags), &s.tags), json.Unmarshal([]byte(text.models), &s.models),
		json.Unmarshal([]byte(text.tools), &s.tools), json.Unmarshal([]byte(text.calls), &s.calls),
		json.Unmarshal([]byte(text.replaced), &s.replaced), json.Unmarshal([]byte(text.names), &s.names))
}

// newState returns a new row for a log. It is written once, after the log was read: a row is
// in so many indexes that a second write would take half the time of a small session.
func (w *writer) newState(name string) (*state, error) {
	s := &state{name: name, sid: name, unsaved: true, headed: true, leaf: -1, isNew: true, fresh: &fresh{}, ids: map[string]int64{}, models: map[string]int64{}, tools: map[string]int64{}}
	var err error
	s.id, err = w.newSession()
	return s, err
}

// newSession returns an id that no session has had.
func (w *writer) newSession() (int64, error) {
	if w.lastSession == 0 {
		if _, err := w.find([]any{&w.lastSession}, `SELECT value FROM counters WHERE name = 'sessions'`); err != nil {
			return 0, err
		}
	}
	w.lastSession++
	return w.lastSession, nil
}

// describe updates the derived fields.
func (s *state) describe() {
	s.title = cmp.Or(s.given, s.first.Text)
	s.sortTitle = foldTitle(s.title)
	s.tokens = cmp.Or(s.billed, s.recorded) // a report includes the recorded sizes
	if s.tail = session.RandomPart(s.sid); s.tail == s.sid {
		s.tail = ""
	}
	if s.tagSet != nil {
		s.tags = s.tagSet.Sorted()
	}
}

// saveState writes the row back.
func (w *writer) saveState(s *state) error {
	s.describe()
	var err error
	if s.dir, err = w.nameID(s.cwd); err != nil {
		return err
	}
	if s.maker, err = w.nameID(s.agent); err != nil {
		return err
	}
	s.row = s.encodeRow()
	text := rowText{marshal(s.tags), marshal(s.models), marshal(s.tools), marshal(s.calls), marshal(s.replaced), marshal(s.names)}
	if len(s.tags) == 0 {
		text.tags = "[]"
	}
	vals := append(values(s.fields(&text)), s.id)
	if s.unsaved {
		err = w.exec(insertRow, append(vals, s.name)...)
	} else {
		err = w.exec(updateRow, vals...)
	}
	if err != nil {
		return err
	}
	s.unsaved = false
	w.noteLink(s)
	if !s.headed {
		return nil
	}
	s.headed = false
	return w.fold(s)
}

// saveTags writes the session's tags, with what each order sorts by. It waits until a log was
// read to its end: after each part of a long one, it would cost the number of tags times the
// number of parts. A row whose log was not read to its end has no time of modification, and
// its tags are written when the rest is read.
func (w *writer) saveTags(s *state) error {
	s.describe()
	if s.retagged {
		if err := w.exec(`DELETE FROM tags WHERE session = ?`, s.id); err != nil {
			return err
		}
		for _, tag := range s.tags {
			if err := w.exec(`INSERT INTO tags (tag, session) VALUES (?, ?) ON CONFLICT DO NOTHING`, bounded(tag), s.id); err != nil {
				return err
			}
		}
		s.retagged = false
	}
	if len(s.tags) == 0 {
		return nil
	}
	return w.exec(`UPDATE tags SET updated = ?, created = ?, sort_title = ?, messages = ?, tokens = ?, size = ? WHERE session = ?`,
		s.updated, s.created, s.sortTitle, s.messages, s.tokens, s.size, s.id)
}

// fold hides a subagent under its parent, and under a new session its subagents that were
// indexed before it.
func (w *writer) fold(s *state) error {
	if s.relation == session.RelationSubagent {
		err := w.exec(`UPDATE sessions SET folded = CASE WHEN EXISTS (SELECT 1 FROM sessions p
			WHERE p.sid = ?1 AND p.id <> ?2 AND p.name IS NOT NULL) THEN 1 ELSE 0 END WHERE id = ?2`, s.parent, s.id)
		if err != nil {
			return err
		}
	}
	return w.exec(`UPDATE sessions SET folded = 1 WHERE parent = ?1 AND parent <> '' AND relation = ?2 AND id <> ?3`,
		s.sid, session.RelationSubagent, s.id)
}

// unfold lists the subagents of a removed session by themselves.
func (w *writer) unfold(id int64) error {
	var sid string
	if found, err := w.find([]any{&sid}, `SELECT sid FROM sessions WHERE id = ?`, id); err != nil || !found {
		return err
	}
	return w.exec(`UPDATE sessions SET folded = CASE WHEN EXISTS (SELECT 1 FROM sessions p
		WHERE p.sid = ?1 AND p.id NOT IN (sessions.id, ?2) AND p.name IS NOT NULL) THEN 1 ELSE 0 END
		WHERE parent = ?1 AND parent <> '' AND folded = 1`, sid, id)
}

// values returns the values of a row's columns.
func values(fields []any) []any {
	vals := make([]any, len(fields), len(fields)+2)
	for i, field := range fields {
		switch f := field.(type) {
		case *string:
			vals[i] = *f
		case *int64:
			vals[i] = *f
		case *Worth:
			vals[i] = int64(*f)
		case *bool:
			vals[i] = *f
		case *[]byte:
			vals[i] = *f
		default:
			panic(fmt.Sprintf("index: a column of type %T", f)) // a mistake in fields
		}
	}
	return vals
}

func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // lists and maps of strings and numbers
	}
	return string(data)
}

// setHeader copies the header's fields.
func (s *state) setHeader(h *session.Header) {
	s.headed = true
	s.sid, s.key, s.cwd = s.name, bounded(h.Key), h.CWD
	s.parent, s.relation, s.continuation = bounded(h.ParentSession), bounded(h.Relation), int64(h.Continuation)
	s.begins = h.Relation == session.RelationContinuation
	s.agent = session.AgentOf(h)
	if origin, ok := session.OriginOf(h); ok {
		s.native = bounded(origin.ID)
	}
	s.created = millis(h.CreatedAt)
	s.date()
	if h.ID != "" && h.ID != s.name {
		s.problems++
	}
}

// date updates when the session was last active: the time of the last message, or else of its
// creation, which for an import may be much later.
func (s *state) date() { s.updated = cmp.Or(s.said, s.created) }

// givenName is an entry that gave a session a name, or took it away.
type givenName struct {
	Name   string `json:"name"`
	N      int64  `json:"n"`
	Begins bool   `json:"begins,omitempty"` // the session begins with it, so it may count elsewhere
}

// maxNames is how many names are remembered of the entries that a session begins with.
const maxNames = 64

// rename remembers a name. The latest counts, even if it is empty.
func (s *state) rename(to givenName) {
	s.given = to.Name
	if last := len(s.names) - 1; last >= 0 && (!s.names[last].Begins || last == maxNames) {
		s.names = s.names[:last]
	}
	s.names = append(s.names, to)
}

// remember records what an entry says about the session as a whole.
func (s *state) remember(n int64, rec *record) {
	s.entries++
	if s.created == 0 {
		s.created = rec.time // the header is missing
	}
	if rec.isSaid { // tidying up does not make a session recent: see session.LastSaid
		s.said = max(s.said, rec.time)
	}
	s.date()
	if rec.isMessage {
		s.messages++
	}
	s.first = BetterTitle(s.first, rec.title)
	if rec.name != nil {
		s.rename(givenName{NameTitle(*rec.name), n, s.begins})
	}
	if rec.tags != nil {
		if s.tagSet == nil {
			s.tagSet = &session.TagSet{}
			s.tagSet.Add(s.tags...)
		}
		s.tagSet.Apply(rec.tags)
		s.retagged = true
	}
	if rec.pinned != nil {
		s.pinned = *rec.pinned
	}
	if rec.continuedTo != nil {
		before := s.continuedTo
		s.continuedTo = bounded(session.ContinuedTo(&session.Entry{Custom: rec.continuedTo}, s.sid, before))
		if before != "" && before != s.continuedTo {
			s.replaced = append(s.replaced, before)
		}
	}
	if rec.model != "" {
		s.models[rec.model]++
	}
	for _, c := range rec.calls {
		s.tools[c[1]]++
		s.calls = append(s.calls, c)
	}
	if len(s.calls) > maxCalls {
		s.calls = s.calls[len(s.calls)-maxCalls:]
	}
}

// toolOf returns the tool whose call has an id.
func (s *state) toolOf(callID string) string {
	for i := len(s.calls) - 1; i >= 0; i-- {
		if s.calls[i][0] == callID {
			return s.calls[i][1]
		}
	}
	return ""
}

// maxKey is how many bytes of a text are looked up: a database may take no more than 2,700 of
// all that it looks up together.
const maxKey = 1_000

// bounded returns a text that can be looked up. Of a longer one it is the beginning, and a sum
// of it all.
func bounded(text string) string {
	if len(text) <= maxKey {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return strings.ToValidUTF8(text[:maxKey-2*len(sum)], "") + hex.EncodeToString(sum[:])
}

// idKey returns an entry's id as it is stored. A UUID takes half the space: its 16 bytes.
// Another id has a mark before it, and never 16 bytes.
func idKey(id string) []byte {
	if len(id) == 36 && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-' {
		digits := id[:8] + id[9:13] + id[14:18] + id[19:23] + id[24:]
		if b, err := hex.DecodeString(digits); err == nil && digits == strings.ToLower(digits) {
			return b
		}
	}
	if id = bounded(id); len(id) == 15 {
		return []byte("~~" + id)
	}
	return []byte("=" + id)
}

// idOf is the reverse of idKey; NULL gives "".
func idOf(key any) string {
	k, _ := key.([]byte)
	switch {
	case len(k) == 16:
		h := hex.EncodeToString(k)
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	case len(k) > 0 && k[0] == '~':
		return string(k[2:])
	case len(k) > 0:
		return string(k[1:])
	}
	return ""
}
