package claudecode

import (
	"bytes"
	"context"
	"errors"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// readWeb reads a session of the web application: a document whose member
// loglines has the lines, most without ids.
func readWeb(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	data, err := f.ReadAll()
	if err != nil {
		return err
	}
	r := newReader(ctx, f, to)
	no, pos := int64(0), 0
	found := false
	err = rawjson.Object(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), func(k, v []byte) error {
		if string(k) != "loglines" || rawjson.Kind(v) != 'a' {
			return nil
		}
		found = true
		pos = bytes.Index(data, []byte(`"loglines"`))
		return rawjson.Array(v, func(raw []byte) error {
			no++
			if err := ctx.Err(); err != nil {
				return err
			}
			at := bytes.Index(data[pos:], raw) // not far: white space and a comma
			pos += at
			err := r.webLine(raw, int64(pos), no)
			pos += len(raw)
			return err
		})
	})
	var syntax *rawjson.SyntaxError
	if errors.As(err, &syntax) || err == nil && !found {
		return &session.Error{Op: "read", Path: f.Path, Kind: session.ErrCorrupt, Err: errors.Join(errors.New("not a list of log lines"), err)}
	}
	if err != nil {
		return err
	}
	return r.finish()
}

// webLine reads one of the lines. Lines without ids are named by their place.
func (r *reader) webLine(raw []byte, pos, no int64) error {
	text := transcript.Line{Data: raw, No: no, Span: transcript.Span{Pos: pos, Len: int64(len(raw))}}
	var l line
	if l.parse(raw) == nil && len(l.uuid) == 0 && (string(l.typ) == "user" || string(l.typ) == "assistant") {
		id := transcript.HashID(Name, string(l.timestamp), string(l.message))
		named := append([]byte(`{"uuid":"`+id+`",`), bytes.TrimLeft(raw[1:], " \t\r\n")...)
		text.Data = named
	}
	return r.line(&text)
}
