package home

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// AppendRequest appends one entry: a message, or a whole entry in the form of the
// log.
type AppendRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	// Message is the message to append. Its role is user, assistant, system or tool.
	Message *session.MessageEntry `json:"message,omitempty"`
	// Entry is a whole entry in the form of the log (docs/format.md). Its id and its
	// timestamp may be missing. Its parent_id, if given, must be the leaf, unless the
	// entry moves the leaf. Set exactly one of Message and Entry.
	Entry json.RawMessage `json:"entry,omitempty"`
	// At is the entry that the conversation must end with, as a person names it, or NoEntry if
	// nothing must have been said yet. If it has continued since, nothing is written, and the
	// error is session.ErrConflict. Default: whatever the conversation ends with by then.
	At string `json:"at,omitempty"`
	// Parent is the entry to append after, as a person names it. If the conversation has
	// continued from there, the new entry begins a branch, which becomes the live one. Default:
	// whatever the conversation ends with. If At is the same entry, it must be the last one of
	// its branch, live or not: so people can talk on several branches at once, and no message
	// follows one that its author has not seen.
	Parent string `json:"parent,omitempty"`
	// Force appends the result of a tool call even if no call waits for it.
	Force bool `json:"force,omitempty"`
	// Once is the caller's own name for this append, such as a random text. A caller that got
	// no answer sends the request again with the same name: if the entry was written, Append
	// returns it and writes nothing. Default: sending twice appends twice.
	Once string `json:"once,omitempty"`
}

// AppendResult says what was appended.
type AppendResult struct {
	Session string `json:"session"` // the session that was written to
	Entry   string `json:"entry"`
	Already bool   `json:"already,omitempty"` // an earlier request with the same Once wrote it
}

// Append appends an entry at the end of a conversation: to its last session or, if that
// one is missing, to a new session that replaces it.
//
// A message makes sense wherever the conversation has got to, so two writers that
// append at the same moment both succeed, one after the other. Set At to check that
// nothing came in between, Parent to answer one entry whatever came in between, and both
// to answer it only if no one else has. An entry that acts on what is before it, such as a
// compaction, is refused with session.ErrConflict if another writer comes first.
func (e *Entries) Append(ctx context.Context, r AppendRequest) (*AppendResult, error) {
	return call(ctx, e.home, "entries.append", r, e.append)
}

func (e *Entries) append(ctx context.Context, r AppendRequest) (*AppendResult, error) {
	result, again, err := e.tryAppend(ctx, r)
	if again {
		result, _, err = e.tryAppend(ctx, r)
	}
	return result, err
}

// tryAppend is append. It also reports whether the session was open before and has changed so much
// that nothing was tried.
func (e *Entries) tryAppend(ctx context.Context, r AppendRequest) (_ *AppendResult, again bool, _ error) {
	h := e.home
	h.beforeWriting(ctx)
	entry, err := r.entry()
	if err == nil {
		err = h.checkID(entry.ID)
	}
	if err == nil && r.Once != "" && entry.ID != "" {
		err = exclude("entry.id", "once")
	}
	if err != nil {
		return nil, false, err
	}
	c, err := h.openToAppend(ctx, r, &entry)
	if err != nil {
		return nil, false, err
	}
	if r.Once != "" {
		entry.ID = onceID(c, r.Once)
		entry.Extra = append(entry.Extra, session.Field{Name: onceField, Value: []byte(strconv.Quote(r.digest()))})
		if done, err := h.appended(ctx, c, entry.ID, r.digest()); done != nil || err != nil {
			return done, false, errors.Join(err, c.Close())
		}
	}
	id, err := h.append(ctx, c, entry, r)
	again = c.kept.failed(err)
	if r.Once != "" && (errors.Is(err, session.ErrExist) || errors.Is(err, session.ErrConflict)) {
		// The same request may have run at the same time, and come first.
		if done, again := h.appendedSince(ctx, c, entry.ID, r.digest()); done != nil || again != nil {
			return done, false, errors.Join(again, c.Close())
		}
	}
	if err := errors.Join(forCaller("append", c.Handle, err), c.Close()); err != nil {
		return nil, again, err
	}
	return &AppendResult{Session: c.Handle, Entry: id}, false, nil
}

// onceID returns the id of the entry that a request with a Once writes. So the log itself says
// whether it was written, to every process and after a crash.
func onceID(c *Conversation, once string) string {
	sum := sha256.Sum256([]byte("coppice once\n" + cmp.Or(c.Chain.ID, c.ID()) + "\n" + once))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// onceField is the field of an entry that was appended with a Once: a digest of what was to
// be appended. So a second use of the name for something else is noticed.
const onceField = "once"

// digest distinguishes a request from another one with the same Once.
func (r *AppendRequest) digest() string {
	said, _ := json.Marshal(r.Message) // nil if it cannot be written; then Append says why
	sum := sha256.Sum256(slices.Concat(said, []byte("\n"), r.Entry))
	return hex.EncodeToString(sum[:8])
}

// appended returns the result of an earlier request that wrote to a conversation, or nil.
func (h *Home) appended(ctx context.Context, c *Conversation, id, digest string) (*AppendResult, error) {
	name := c.Handle
	has, err := c.Has(id)
	if err == nil && !has && !c.isAlone() {
		name, err = h.linkWith(ctx, c.Chain, id)
		has = name != ""
	}
	if err != nil || !has {
		return nil, err
	}
	kept, err := session.Open(ctx, h.store, name, nil)
	if err != nil {
		return nil, err
	}
	defer kept.Close() // it is only read
	entries, err := kept.Peek(id)
	if err != nil {
		return nil, err
	}
	same := slices.ContainsFunc(entries[0].Extra, func(f session.Field) bool {
		return f.Name == onceField && string(f.Value) == strconv.Quote(digest)
	})
	if !same {
		return nil, &session.Error{
			Op: "append", Name: name, Kind: session.ErrConflict,
			Err:  wrong("once", "entry %s was appended with the same {once} and other content; nothing was written", id),
			Hint: "use another one for other content",
		}
	}
	return &AppendResult{Session: name, Entry: id, Already: true}, nil
}

// appendedSince is appended for the entries written since the conversation was opened.
func (h *Home) appendedSince(ctx context.Context, c *Conversation, id, digest string) (*AppendResult, error) {
	if _, err := c.Refresh(); err != nil {
		return nil, err
	}
	return h.appended(ctx, c, id, digest)
}

// openToAppend opens the session that an entry is appended to.
func (h *Home) openToAppend(ctx context.Context, r AppendRequest, e *session.Entry) (*Conversation, error) {
	alone, chain, err := h.findKept(ctx, r.Session)
	switch {
	case err != nil || alone != nil:
		return alone, err
	case r.Parent != "":
		return h.openLastOf(ctx, "append", chain, r.Parent)
	case e.Message == nil: // the entries that it refers to are in a session that exists
		return h.openSession(ctx, last(chain), chain)
	}
	return h.openEndOf(ctx, chain)
}

// checkID refuses an id that is a secret: it would stay in the log and be shown again and
// again, because secrets are removed only from content.
func (h *Home) checkID(id string) error {
	g := h.guarded.Load()
	if g.err != nil || id == "" {
		return g.err
	}
	if h.settings.redacts() && len(redact.Find([]byte(id))) > 0 || string(g.guard.Raw([]byte(id))) != id {
		return wrong("entry.id", "{entry.id} looks like a secret; give the entry another id, or none")
	}
	return nil
}

// entry builds the entry and checks whatever can be checked without the conversation.
func (r *AppendRequest) entry() (session.Entry, error) {
	switch {
	case r.Message != nil && r.Entry != nil:
		return session.Entry{}, exclude("message", "entry")
	case r.Message == nil && r.Entry == nil:
		return session.Entry{}, wrong("message", "either {message} or {entry} is needed")
	case r.Message != nil:
		if err := checkMessage(r.Message); err != nil {
			return session.Entry{}, within("message", err)
		}
		return session.Entry{Type: session.TypeMessage, Message: r.Message}, checkForm(r.Message, "message")
	}
	if err := checkUTF8("entry", string(r.Entry)); err != nil {
		return session.Entry{}, err
	}
	e, err := session.ParseEntry(r.Entry)
	if err != nil {
		return e, wrongAs("entry", err)
	}
	if e.Message != nil {
		err = within("entry.message", checkCategory(e.Message.Category))
	}
	return e, err
}

// checkForm refuses a message that no log may have, such as one with a block that does not say
// what it is.
func checkForm(m *session.MessageEntry, field string) error {
	if err := session.CheckEntry(&session.Entry{Type: session.TypeMessage, Message: m}); err != nil {
		return wrong(field, "{"+field+"}: %w", err)
	}
	return nil
}

func checkMessage(m *session.MessageEntry) error {
	if err := session.CheckRole(m.Role); err != nil {
		return wrongAs("role", err)
	}
	if err := checkCategory(m.Category); err != nil {
		return err
	}
	if m.Tokens != nil && *m.Tokens < 0 {
		return wrong("tokens", "{tokens} is %d; it must not be negative", *m.Tokens)
	}
	for i := range m.Content {
		if err := checkUTF8("content", textsIn(&m.Content[i])...); err != nil {
			return err
		}
	}
	if err := checkSaid("content", m.Content); err != nil {
		return err
	}
	return cmp.Or(checkUTF8("model", m.Model), checkUTF8("provider", m.Provider),
		checkUTF8("stop_reason", m.StopReason), checkUTF8("response_id", m.ResponseID))
}

// checkSaid refuses content that says nothing: no blocks, or only texts of white space. Providers
// refuse a request with such a message in it.
func checkSaid(field string, content []session.Content) error {
	for i := range content {
		if t := content[i].Text; t == nil || orNone(t.Content) != "" {
			return nil
		}
	}
	return wrong(field, "the message is empty: it needs a text that is not only white space, or another block")
}

// checkCategory refuses an unknown category.
func checkCategory(name string) error {
	if name == "" {
		return nil
	}
	if _, err := window.ParseCategory(name); err != nil {
		return wrong("category", "{category} is %q; it must be SYSTEM, CONTEXT, DIALOG or SYSTEM_OUTPUT", name)
	}
	return nil
}

// textsIn are the texts of a block that come from outside as bytes.
func textsIn(c *session.Content) []string {
	switch {
	case c.Text != nil:
		return []string{c.Text.Content}
	case c.ToolResult != nil:
		return []string{c.ToolResult.ToolUseID, c.ToolResult.Content}
	}
	return nil
}

// checkUTF8 refuses text in a field that is not valid UTF-8. JSON would replace those bytes
// with other characters, and they would be lost.
func checkUTF8(field string, texts ...string) error {
	for _, text := range texts {
		if utf8.ValidString(text) {
			continue
		}
		at := 0
		for at < len(text) {
			r, size := utf8.DecodeRuneInString(text[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		return wrong(field, "{"+field+"} is not UTF-8: byte %d is 0x%02x; convert it first", at+1, text[at])
	}
	return nil
}

// orNone returns "" for text that is only white space.
func orNone(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}

// append appends an entry to a session of a conversation. Everything that it checks still
// holds when the entry is written: see session.Session.Update.
func (h *Home) append(ctx context.Context, c *Conversation, e session.Entry, r AppendRequest) (id string, err error) {
	at, err := appendAt(c, &e, r.At)
	if err != nil {
		return "", err
	}
	parent := ""
	if r.Parent != "" {
		if parent, err = c.Resolve(r.Parent); err != nil {
			return "", err
		}
	}
	seen := c.LeafID()
	err = c.Update(ctx, func(tx *session.Tx) error {
		c.kept.serve(ctx)
		if r.At == NoEntry {
			if err := expectEmpty(c, tx.Leaf()); err != nil {
				return err
			}
		}
		if !isRightAnywhere(&e) && parent == "" {
			if err := tx.Expect(seen); err != nil {
				return err
			}
		}
		if err := moveLeafTo(c, tx, at, parent); err != nil {
			return err
		}
		if err := h.checkEntry(ctx, c, tx.Leaf(), &e, r.Force); err != nil {
			return err
		}
		id = tx.Append(e)
		return nil
	})
	return id, err
}

// expectEmpty returns a conflict if a conversation has messages. Its name, tags and
// labels do not count.
func expectEmpty(c *Conversation, leaf string) error {
	end, err := conversationEnd(c.Session, leaf)
	if err != nil || end == "" && c.isAlone() {
		return err
	}
	return &session.Error{
		Op: "append", Name: c.Handle, Kind: session.ErrConflict, Err: fmt.Errorf("something was said already, and it ends with entry %q; nothing was written", end),
		Hint: "look at what was added, then try again",
	}
}

// moveLeafTo moves the leaf to an entry, unless only notes were made after it. at is the entry
// that must be the end of the live branch or, if it is the parent too, of its own.
func moveLeafTo(c *Conversation, tx *session.Tx, at, parent string) error {
	if at != "" && at != parent {
		if err := tx.Expect(at); err != nil {
			return err
		}
	}
	if parent == "" {
		return nil
	}
	end, err := conversationEnd(c.Session, tx.Leaf())
	if err == nil && end != parent {
		tx.Branch(parent)
	}
	if err == nil && at == parent {
		err = tx.Expect(at)
	}
	return err
}

// isRightAnywhere reports whether an entry means the same wherever the conversation has got
// to. Other entries act on what comes before them, so their writer must have seen that.
func isRightAnywhere(e *session.Entry) bool {
	switch e.Type {
	case session.TypeMessage, session.TypeModelChange, session.TypeThinkingLevel:
		return true
	}
	return e.Type.IsRemark()
}

// appendAt returns the entry that an entry must follow, or "" if it may follow any.
func appendAt(c *Conversation, e *session.Entry, given string) (at string, err error) {
	switch given {
	case "":
	case NoEntry:
		return "", nil
	default:
		return c.Resolve(given)
	}
	if e.ParentID == nil || e.Type == session.TypeLeaf {
		return "", nil
	}
	end, err := conversationEnd(c.Session, c.LeafID())
	if err != nil {
		return "", err
	}
	if leaf := c.LeafID(); *e.ParentID != leaf && *e.ParentID != end {
		return "", &session.Error{
			Op: "append", Name: c.Handle, Err: wrong("entry.parent_id", "{entry.parent_id} is %q, but the leaf is %q", *e.ParentID, end),
			Hint: "leave parent_id out, or branch there first",
		}
	}
	at = *e.ParentID
	e.ParentID = nil // the session fills it in, after any notes that were made there since
	return at, nil
}

// checkEntry refuses an entry that can only be a mistake.
func (h *Home) checkEntry(ctx context.Context, c *Conversation, leaf string, e *session.Entry, force bool) error {
	if e.Merge != nil {
		return checkMerge(c, leaf, e.Merge.FromID)
	}
	if e.Label != nil {
		return checkLabel(c.Session, e.Label.Label)
	}
	if force || e.Message == nil || !slices.ContainsFunc(e.Message.Content, func(b session.Content) bool { return b.ToolResult != nil }) {
		return nil
	}
	whole := c.Session
	if !c.isAlone() { // the call may be in an earlier session
		var err error
		if whole, err = session.OpenChain(ctx, h.store, c.Chain, h.sessionOptions(ctx)); err != nil {
			return err
		}
		defer whole.Close()
		leaf = whole.LeafID()
	}
	path, err := peekPath(whole, leaf)
	if err != nil {
		return err
	}
	if err := session.CheckResults(path, e); err != nil {
		return &session.Error{Op: "append", Name: c.Handle, Err: &ResultError{err}}
	}
	return nil
}

// peekPath returns the path to an entry without the content of blobs.
func peekPath(s *session.Session, id string) ([]session.Entry, error) {
	shape, path, err := pathIn(s, id)
	if err != nil {
		return nil, err
	}
	return shape.Peek(path, nil)
}

// ResultError means that no tool call waits for a result. With AppendRequest.Force it is
// appended anyway, but no model will see it. It matches session.ErrInvalid.
type ResultError struct{ Err error }

func (e *ResultError) Error() string        { return e.Err.Error() }
func (e *ResultError) Unwrap() error        { return e.Err }
func (e *ResultError) Is(target error) bool { return target == session.ErrInvalid }
