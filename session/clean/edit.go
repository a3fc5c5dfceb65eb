package clean

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/store"
)

// editor cleans the lines of a store's logs together with the blobs that they refer to.
type editor struct {
	*cleaner
	blobs store.Blobs
	write bool // put new blobs into the store
	known map[store.Ref]*blob
}

// blob is the new form of a blob.
type blob struct {
	found []redact.Finding // none means that it stays as it is
	ref   store.Ref        // its new name
	size  int
	sum   string // SHA-256 of a kept source, before compression
}

func newEditor(s *redact.Scanner, blobs store.Blobs, write bool) *editor {
	return &editor{cleaner: newCleaner(s), blobs: blobs, write: write, known: make(map[store.Ref]*blob)}
}

// edited is the new form of a line.
type edited struct {
	line    []byte
	entry   string // its id
	secrets []Secret
}

// edit cleans a line and the blobs that it refers to. New blobs are durable before it
// returns, so that no line ever names a blob that is not there.
func (ed *editor) edit(ctx context.Context, line []byte) (edited, error) {
	out, found, err := ed.line(line)
	if err != nil {
		return edited{}, err
	}
	e := edited{line: out}
	if head, ok := rawjson.LenientHead(line); ok {
		e.entry = string(head.ID)
	}
	for _, f := range found {
		e.secrets = append(e.secrets, Secret{Entry: e.entry, Path: f.Path, Kind: f.Kind, Same: f.Same, Preview: f.Preview, start: f.Start})
	}
	if kept := sourceIn(line, found); kept != "" {
		for i := range e.secrets {
			if e.secrets[i].Path == keptPath {
				e.secrets[i].Kept, e.secrets[i].in = true, kept
			}
		}
	}
	if !bytes.Contains(line, []byte(`"sha256:`)) {
		return e, nil
	}
	for _, r := range refsIn(line) {
		b, err := ed.blob(ctx, r.ref)
		if err != nil {
			return edited{}, err
		}
		if len(b.found) == 0 {
			continue
		}
		for _, f := range b.found {
			e.secrets = append(e.secrets, Secret{Entry: e.entry, Path: r.path, Kind: f.Kind, Same: f.Same, Preview: f.Preview, Blob: r.ref, Kept: r.path == keptBlobPath, in: r.ref, start: f.Start})
		}
		e.line = b.replaceIn(e.line, r.ref)
	}
	return e, nil
}

// reference is where a line names a blob.
type reference struct {
	path string
	ref  store.Ref
}

func refsIn(line []byte) []reference {
	var refs []reference
	// A line that is not JSON refers to nothing.
	_ = redact.Strings(line, func(path string, text []byte) {
		if _, ok := store.Ref(text).Hex(); ok {
			refs = append(refs, reference{path, store.Ref(text)})
		}
	})
	return refs
}

// blob computes the new form of a blob. If it is missing, damaged or not text, it stays
// as it is.
func (ed *editor) blob(ctx context.Context, ref store.Ref) (*blob, error) {
	if b, ok := ed.known[ref]; ok {
		return b, nil
	}
	b := &blob{}
	data, err := ed.blobs.Get(ctx, ref)
	if err != nil && !errors.Is(err, store.ErrNotExist) && !errors.Is(err, store.ErrCorrupt) {
		return nil, err
	}
	var cleaned []byte
	switch {
	case err != nil:
	case isPacked(data):
		cleaned, b.sum, b.found, err = ed.packed(data)
		if err != nil { // some other compressed data, not an import's
			b.found = nil
		}
	default:
		ed.see(data)
		cleaned, b.found = document(ed.scan, data)
	}
	if len(b.found) > 0 {
		b.ref, b.size = store.RefOf(cleaned), len(cleaned)
		if ed.write {
			if _, err := ed.blobs.Put(ctx, cleaned); err != nil {
				return nil, err
			}
		}
	}
	ed.known[ref] = b
	return b, nil
}

// replaceIn makes a line refer to the new blob. Other members stay as they are, except
// for those that describe the blob.
func (b *blob) replaceIn(line []byte, old store.Ref) []byte {
	line = bytes.ReplaceAll(line, []byte(`"`+old+`"`), []byte(`"`+b.ref+`"`))
	size := regexp.MustCompile(fmt.Sprintf(`("blob"\s*:\s*"%s"\s*,\s*"size"\s*:\s*)\d+`, b.ref))
	line = size.ReplaceAll(line, []byte("${1}"+strconv.Itoa(b.size)))
	if b.sum == "" {
		return line
	}
	e, ok := importEntry(line)
	if !ok {
		return line
	}
	e.Custom.Data["sha256"] = b.sum
	if out, err := e.MarshalJSON(); err == nil {
		return out
	}
	return line
}
