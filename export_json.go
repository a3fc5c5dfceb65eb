package coppice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// writeJSON writes the conversation as one document, an entry at a time.
func (c *Conversation) writeJSON(ctx context.Context, w io.Writer) error {
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
	comma := "\n"
	for e, err := range c.Entries() {
		if err == nil {
			err = ctx.Err() // entries in memory come without a look at the context
		}
		if err != nil {
			return err
		}
		line, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s%s", comma, line); err != nil {
			return err
		}
		comma = ",\n"
	}
	leaf := []byte("null")
	if id := c.LeafID(); id != "" {
		leaf = rawjson.AppendString(nil, id)
	}
	named, err := json.Marshal(labels)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n],\n\"leaf\":%s,\n\"labels\":%s}\n", leaf, named)
	return err
}

// writeLines writes the log as it is, including damaged lines. Secrets are taken out of the
// lines only: content in blobs is not written, unless it is inlined first.
func (c *Conversation) writeLines(ctx context.Context, w io.Writer, r *ExportRequest) (err error) {
	if !c.IsAlone() {
		return c.writeJoined(ctx, w, r)
	}
	log, err := c.home.store.Open(ctx, c.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return err
		}
		if line.Cut {
			return &session.Error{
				Op: "export", Name: c.Name, Offset: int64(line.Pos), At: true, Kind: session.ErrTooLarge,
				Err: errors.New("the line is longer than the limit max_entry"), Hint: "raise max_entry and export again",
			}
		}
		data := line.Data
		if r.Inline {
			data = c.inlined(data)
		}
		if err := writeLine(w, data, r.Redact); err != nil {
			return err
		}
	}
	return nil
}

func writeLine(w io.Writer, line []byte, redact bool) error {
	if redact {
		line = transcript.Redact(line)
	}
	_, err := w.Write(append(line, '\n'))
	return err
}

// writeJoined writes the log that a conversation would have as a single session.
func (c *Conversation) writeJoined(ctx context.Context, w io.Writer, r *ExportRequest) error {
	line, err := json.Marshal(c.Header())
	if err == nil {
		err = writeLine(w, line, r.Redact)
	}
	if err != nil {
		return err
	}
	ids, err := c.EntryIDs()
	if err != nil {
		return err
	}
	for some := range slices.Chunk(ids, render.ReadAtOnce) {
		entries, err := c.Peek(some...)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			if e.Type == session.TypeGap {
				continue // it is not there
			}
			if r.Inline {
				if e, err = c.Entry(e.ID); err != nil {
					return err
				}
			}
			line, err := e.MarshalJSON()
			if err == nil {
				err = writeLine(w, line, r.Redact)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// inlined returns a line with its blobs filled in. A line without blobs, or one that
// cannot be read, stays as it is.
func (c *Conversation) inlined(line []byte) []byte {
	h, ok := rawjson.ScanHead(line)
	if !ok || !bytes.Contains(line, []byte(`"blob"`)) {
		return line
	}
	e, err := c.Entry(string(h.ID))
	if err != nil {
		return line
	}
	filled, err := e.MarshalJSON()
	if err != nil {
		return line
	}
	return filled
}
