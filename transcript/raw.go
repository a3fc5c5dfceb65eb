package transcript

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// sourcePart is one place in the source of an imported entry.
type sourcePart struct {
	In  string `json:"in"` // the entry of type CustomImport
	Pos int64  `json:"pos"`
	Len int64  `json:"len"`
}

// Raw returns the bytes of the source that an imported entry was made from: the lines
// as they were in the file, one after the other. It returns ErrNotExist for an entry
// that was not imported, and ErrCorrupt if what is kept does not match its hash.
func Raw(ctx context.Context, st store.Store, s *session.Session, e *session.Entry) ([]byte, error) {
	if st == nil || s == nil || e == nil {
		return nil, errMissing("read source", "a store, a session and an entry of it")
	}
	var parts []sourcePart
	for _, f := range e.Extra {
		if f.Name == sourceField && json.Unmarshal(f.Value, &parts) != nil {
			return nil, errNotRaw(e.ID, "its member source has a form that no import writes")
		}
	}
	if len(parts) == 0 {
		return nil, errNotRaw(e.ID, "the entry was not imported, or without its bytes")
	}
	var raw bytes.Buffer
	pieces := make(map[string]*piece)
	for _, part := range parts {
		p := pieces[part.In]
		if p == nil {
			var err error
			if p, err = openPiece(ctx, st, s, part.In); err != nil {
				return nil, err
			}
			pieces[part.In] = p
		}
		begin := part.Pos - p.From
		if begin < 0 || part.Len < 0 || begin > p.Len-part.Len {
			return nil, errNotRaw(e.ID, "it names bytes that are not there")
		}
		raw.Write(p.raw[begin : begin+part.Len])
	}
	return raw.Bytes(), nil
}

// CameFrom returns the format and the path of the file that an entry was imported from,
// and false for an entry that was not imported.
func CameFrom(s *session.Session, e *session.Entry) (format, path string, ok bool) {
	if s == nil || e == nil {
		return "", "", false
	}
	for _, f := range e.Extra {
		var parts []sourcePart
		if f.Name != sourceField || json.Unmarshal(f.Value, &parts) != nil || len(parts) == 0 {
			continue
		}
		note, err := s.Entry(parts[0].In)
		if err != nil || note.Custom == nil || note.Custom.CustomType != CustomImport {
			return "", "", false
		}
		format, _ = note.Custom.Data["format"].(string)
		path, _ = note.Custom.Data["path"].(string)
		return format, path, path != ""
	}
	return "", "", false
}

// piece is the data of an entry of type CustomImport.
type piece struct {
	From   int64     `json:"from"`
	Len    int64     `json:"len"`
	SHA256 string    `json:"sha256"`
	Blob   store.Ref `json:"blob"`
	Data   string    `json:"data"`

	raw []byte
}

func openPiece(ctx context.Context, st store.Store, s *session.Session, id string) (*piece, error) {
	e, err := s.Entry(id)
	if err != nil {
		return nil, err
	}
	if e.Custom == nil || e.Custom.CustomType != CustomImport {
		return nil, errNotRaw(id, "it is not an import")
	}
	data, err := json.Marshal(e.Custom.Data)
	if err != nil {
		return nil, err
	}
	var p piece
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, errNotRaw(id, err.Error())
	}
	packed, err := base64.StdEncoding.DecodeString(p.Data)
	if p.Blob != "" {
		packed, err = st.Blobs().Get(ctx, p.Blob)
	}
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxChunk))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	if p.raw, err = dec.DecodeAll(packed, nil); err != nil || sumOf(p.raw) != p.SHA256 || int64(len(p.raw)) != p.Len {
		return nil, errChanged(id)
	}
	return &p, nil
}
