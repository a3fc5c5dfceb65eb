package home

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/coppice-dev/coppice/internal/budget"
	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/transcript"
)

// writeJSON writes the conversation as one document, an entry at a time.
func (c *Conversation) writeJSON(ctx context.Context, w io.Writer, count *int) error {
	labels, err := c.Labels()
	if err != nil {
		return err
	}
	head, err := json.Marshal(c.Header())
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "{\"header\":%s,\n\"entries\":[", head); err != nil {
		return err
	}
	var missing []session.Problem
	comma := "\n"
	for e, err := range c.eachAsOne(ctx) {
		if err != nil {
			return err
		}
		missing = append(missing, fill(c.Session, &e)...)
		line, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s%s", comma, line); err != nil {
			return err
		}
		comma = ",\n"
		*count++
	}
	leaf := []byte("null")
	if id := c.LeafID(); id != "" {
		leaf = rawjson.AppendString(nil, id)
	}
	named, err := json.Marshal(labels)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(w, "\n],\n\"leaf\":%s,\n\"labels\":%s}\n", leaf, named); err != nil {
		return err
	}
	return c.incomplete(ctx, missing)
}

// eachPeeked yields the entries of a session in the order of its log, without what they have
// in blobs.
func eachPeeked(ctx context.Context, s *session.Session) iter.Seq2[session.Entry, error] {
	shape, err := s.Shape()
	if err != nil {
		return func(yield func(session.Entry, error) bool) { yield(session.Entry{}, err) }
	}
	return peeked(ctx, s, shape.IDs())
}

// eachAsOne is eachPeeked for a copy of a conversation as a single session. It leaves out the record
// that the first session goes on in another, because the copy does not. What compactions say that
// they keep is about the sessions in which they are, so that is left out, too.
func (c *Conversation) eachAsOne(ctx context.Context) iter.Seq2[session.Entry, error] {
	if len(c.Chain.Links) < 2 {
		return eachPeeked(ctx, c.Session)
	}
	return func(yield func(session.Entry, error) bool) {
		name, leaf := c.Header().ID, c.LeafID()
		parents := make(map[string]*string) // of what is left out
		for e, err := range eachPeeked(ctx, c.Session) {
			if e.ParentID != nil {
				if above, left := parents[*e.ParentID]; left {
					e.ParentID = above
				}
			}
			if err == nil && e.ID != leaf && session.ContinuedTo(&e, name, "") != "" {
				parents[e.ID] = e.ParentID
				continue
			}
			if err == nil && e.Compaction != nil && e.Compaction.State != nil {
				compaction, state := *e.Compaction, *e.Compaction.State
				state.Kept = nil
				compaction.State = &state
				e.Compaction = &compaction
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// peeked yields some entries without what they have in blobs.
func peeked(ctx context.Context, s *session.Session, ids []string) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		for some := range slices.Chunk(ids, render.ReadAtOnce) {
			done := budget.Part(ctx)
			entries, err := s.Peek(some...)
			if err != nil {
				yield(session.Entry{}, err)
				return
			}
			for _, e := range entries {
				if err := ctx.Err(); !yield(e, err) || err != nil {
					return
				}
			}
			done()
		}
	}
}

// fill completes an entry and returns what is missing of it.
func fill(s *session.Session, e *session.Entry) []session.Problem {
	if e.Type == session.TypeGap {
		return []session.Problem{{Kind: session.ProblemDamaged, EntryID: e.ID, Detail: "the entry cannot be read"}}
	}
	return s.Fill(e)
}

// incomplete is the error of an export that must be complete but is not.
func (c *Conversation) incomplete(ctx context.Context, missing []session.Problem) error {
	if err := ctx.Err(); err != nil || len(missing) == 0 {
		return err // if it ended, nothing could be read
	}
	return &session.Error{
		Op: "export", Name: c.Handle, Err: fmt.Errorf("%w: %s", ErrIncomplete, listProblems(missing)),
		Hint: "check the session; Markdown and HTML show what is left, and jsonl without inlining has the log as it is",
	}
}

// listProblems says what is wrong, at most a few times.
func listProblems(problems []session.Problem) string {
	const most = 3
	text := ""
	for i, p := range problems {
		if i == most {
			return text + fmt.Sprintf(" and %d more", len(problems)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += p.String()
	}
	return text
}

// writeLines writes the log as it is, including damaged lines. Secrets are taken out of the
// lines only: content in blobs is not written, unless it is inlined first.
func (c *Conversation) writeLines(ctx context.Context, w io.Writer, r *ExportRequest, count *int) (err error) {
	if !c.isAlone() {
		return c.writeJoined(ctx, w, r, count)
	}
	log, err := c.home.store.Open(ctx, c.Handle)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	var missing []session.Problem
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return err
		}
		if line.Cut {
			return &session.Error{
				Op: "export", Name: c.Handle, Offset: int64(line.Pos), At: true, Kind: session.ErrTooLarge,
				Err: &store.LimitError{Limit: store.MaxEntry, Max: c.home.settings.number(SettingMaxEntry)}, Hint: "raise the limit and export again",
			}
		}
		data := line.Data
		if r.Inline {
			var lost []session.Problem
			data, lost = c.inlined(data)
			missing = append(missing, lost...)
		}
		if err := writeLine(w, data, r.Redact); err != nil {
			return err
		}
		*count++
	}
	*count-- // the header
	return c.incomplete(ctx, missing)
}

func writeLine(w io.Writer, line []byte, redact bool) (err error) {
	if redact {
		if line, err = redactedLine(line); err != nil {
			return err
		}
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// redactedLine removes the secrets from a line, including the source bytes that an imported
// entry keeps.
func redactedLine(line []byte) ([]byte, error) {
	var e session.Entry
	if e.UnmarshalJSON(line) != nil || e.Type == session.TypeSession {
		return transcript.Redact(line), nil
	}
	found, err := clean.Entry(&e)
	if err != nil || len(found) == 0 {
		return line, err
	}
	return e.MarshalJSON()
}

// writeJoined writes the log that a conversation would have as a single session.
func (c *Conversation) writeJoined(ctx context.Context, w io.Writer, r *ExportRequest, count *int) error {
	line, err := json.Marshal(c.Header())
	if err == nil {
		err = writeLine(w, line, r.Redact)
	}
	if err != nil {
		return err
	}
	var missing []session.Problem
	for e, err := range c.eachAsOne(ctx) {
		if err != nil {
			return err
		}
		if r.Inline {
			missing = append(missing, fill(c.Session, &e)...)
		}
		if e.Type == session.TypeGap {
			continue // it is not there
		}
		line, err := e.MarshalJSON()
		if err == nil {
			err = writeLine(w, line, r.Redact)
		}
		if err != nil {
			return err
		}
		*count++
	}
	return c.incomplete(ctx, missing)
}

// inlined returns a line with its blobs filled in, and what is missing of it. A line that
// cannot be read stays as it is.
func (c *Conversation) inlined(line []byte) ([]byte, []session.Problem) {
	var e session.Entry
	if !bytes.Contains(line, []byte(`"blob"`)) || e.UnmarshalJSON(line) != nil {
		return line, nil
	}
	missing := c.Fill(&e)
	full, err := e.MarshalJSON()
	if err != nil {
		return line, append(missing, session.Problem{Kind: session.ProblemDamaged, EntryID: e.ID, Detail: err.Error(), Err: err})
	}
	return full, missing
}
